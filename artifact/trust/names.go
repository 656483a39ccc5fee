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

// TimestampKey is the key of the only file that is replaced in place; writing it publishes.
const TimestampKey = "metadata/timestamp.json"

// RoleKey returns the key of a version of a role's metadata.
func RoleKey(role string, version int64) string {
	return fmt.Sprintf("metadata/%d.%s.json", version, role)
}

// MetaName returns the name of a role's file in snapshot and timestamp.
func MetaName(role string) string { return role + ".json" }

// CheckProject returns an error if a project may not have this name in a store, where projects share their names with
// the four roles of The Update Framework.
func CheckProject(name string) error {
	if name == AttestationRole || slices.Contains(tuf.TopRoles(), name) {
		return diag.Usage.Hint(fmt.Errorf("%q cannot be a project: it is the name of a signing role", name),
			"choose another name for the project")
	}
	return artifact.CheckProject(name)
}

// CheckDelegated returns an error if targets may not delegate a role of this name: it must be a project, or the
// attestation role.
func CheckDelegated(name string) error {
	if name == AttestationRole {
		return nil
	}
	return CheckProject(name)
}

// ProjectPaths returns the pattern of the targets that a project's key may sign. Its * matches no slash.
func ProjectPaths(project string) string {
	if project == AttestationRole {
		return "attestations/*/*"
	}
	return "deploy/" + project + "/*"
}

// TargetPath returns the name of an artifact in its project's role.
func TargetPath(project, version string, format artifact.Format) string {
	return "deploy/" + project + "/" + version + "." + string(format)
}

// ObjectKey returns the key of an artifact. It contains the digest, so that two publishers of one version do not
// overwrite each other, and objects never change.
func ObjectKey(r artifact.Release) string {
	dir, name := path.Split(TargetPath(r.Project, r.Version, r.Format))
	return dir + r.Digest.Hex() + "." + name
}

// splitTarget is the inverse of TargetPath.
func splitTarget(target string) (version string, format artifact.Format, err error) {
	name := path.Base(target)
	format, err = artifact.FormatOf(name)
	if err != nil {
		return "", "", err
	}
	version = strings.TrimSuffix(name, "."+string(format))
	return version, format, artifact.CheckVersion(version)
}
