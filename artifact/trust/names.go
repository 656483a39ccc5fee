package trust

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// TimestampKey is where the one file lies that is replaced in place; to write it is to publish.
const TimestampKey = "metadata/timestamp.json"

// RoleKey is where a version of a role's metadata lies.
func RoleKey(role string, version int64) string {
	return fmt.Sprintf("metadata/%d.%s.json", version, role)
}

// MetaName is how snapshot and timestamp call a role's file.
func MetaName(role string) string { return role + ".json" }

// CheckProject reports whether a project may have this name in a store, where a project is also a
// role beside the four of The Update Framework.
func CheckProject(name string) error {
	if name == AttestationRole || slices.Contains(tuf.TopRoles(), name) {
		return diag.WithHint(fmt.Errorf("%q cannot be a project: it is the name of a signing role", name), "name the project otherwise")
	}
	return artifact.CheckProject(name)
}

// CheckDelegated reports whether targets may delegate a role of this name: a project, or the
// attestation role.
func CheckDelegated(name string) error {
	if name == AttestationRole {
		return nil
	}
	return CheckProject(name)
}

// ProjectPaths is the pattern of targets that a project's key may sign. Its * matches no slash.
func ProjectPaths(project string) string {
	if project == AttestationRole {
		return "attestations/*/*"
	}
	return "deploy/" + project + "/*"
}

// TargetPath is how a project's role calls an artifact.
func TargetPath(project, version string, format artifact.Format) string {
	return "deploy/" + project + "/" + version + "." + string(format)
}

// ObjectKey is where an artifact lies. The digest in it lets two publishers of one version write
// side by side and makes every artifact's object immutable.
func ObjectKey(r artifact.Release) string {
	dir, name := path.Split(TargetPath(r.Project, r.Version, r.Format))
	return dir + r.Digest.Hex() + "." + name
}

// splitTarget is the reverse of TargetPath.
func splitTarget(target string) (version string, format artifact.Format, err error) {
	name := path.Base(target)
	format, err = artifact.FormatOf(name)
	if err != nil {
		return "", "", err
	}
	version = strings.TrimSuffix(name, "."+string(format))
	return version, format, artifact.CheckVersion(version)
}
