package trust

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
)

// Field names of ours inside signed metadata, where The Update Framework allows any.
const (
	channelsField = "channels" // project role: channel name -> Pointer
	yanksField    = "yanked"   // project role: version -> Yank
	createdField  = "created"  // timestamp: when it was signed
)

// Role is a targets role: the top one or a project's.
type Role = tuf.Metadata[tuf.TargetsType]

// Pointer is where a channel points. The project role's version and expiry are the channel's too;
// Serial counts the moves of this one channel.
type Pointer struct {
	Version string          `json:"version"`
	Digest  artifact.Digest `json:"digest"`
	Serial  int64           `json:"serial"`
	// Proof is what the channel's Requirement asks for, see Proof; empty where nothing is required.
	Proof json.RawMessage `json:"proof,omitempty"`
}

// Yank says that a release was taken back.
type Yank struct {
	Digest artifact.Digest `json:"digest"`
	Reason string          `json:"reason,omitempty"`
	At     time.Time       `json:"at"`
}

// Channels reads the channels of a project's role.
//
// Names that no publisher gives are not among them.
func Channels(role *Role) (map[string]Pointer, error) {
	return named(role, channelsField, func(name string, _ Pointer) bool { return artifact.CheckChannel(name) == nil })
}

// SetChannels writes the channels of a project's role, to be signed.
func SetChannels(role *Role, channels map[string]Pointer) error {
	return setField(role, channelsField, channels)
}

// Yanks reads which releases a project took back, by version.
//
// Names that no publisher gives are not among them.
func Yanks(role *Role) (map[string]Yank, error) {
	return named(role, yanksField, func(version string, _ Yank) bool { return artifact.CheckVersion(version) == nil })
}

// named is fieldOf without the entries that are not good.
func named[V any](role *Role, field string, good func(string, V) bool) (map[string]V, error) {
	values, err := fieldOf[V](role, field)
	maps.DeleteFunc(values, func(name string, v V) bool { return !good(name, v) })
	return values, err
}

// SetYanks writes which releases a project took back, to be signed.
func SetYanks(role *Role, yanks map[string]Yank) error { return setField(role, yanksField, yanks) }

// fieldOf reads a field of ours; it is empty and never nil where the role has none.
func fieldOf[V any](role *Role, name string) (map[string]V, error) {
	values := map[string]V{}
	return values, readField(role, name, &values)
}

// readField reads a field of ours into a value, which stays as it is where the role has none.
func readField(role *Role, name string, value any) error {
	raw, ok := role.Signed.UnrecognizedFields[name]
	if !ok || raw == nil {
		return nil
	}
	// The library hands unknown fields over as decoded JSON.
	data, err := json.Marshal(raw)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, value); err != nil {
		return fmt.Errorf("reading its field %q: %w", name, err)
	}
	return nil
}

func setField(role *Role, name string, values any) error {
	data, err := json.Marshal(values)
	if err != nil {
		return err
	}
	var raw any
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	if role.Signed.UnrecognizedFields == nil {
		role.Signed.UnrecognizedFields = map[string]any{}
	}
	role.Signed.UnrecognizedFields[name] = raw
	return nil
}

// Releases lists the releases that a project's role signs, by version. Targets outside the
// project's own path are left out.
func Releases(project string, role *Role) []artifact.Release {
	var releases []artifact.Release
	for target, file := range role.Signed.Targets {
		version, format, err := splitTarget(target)
		if err != nil || target != TargetPath(project, version, format) {
			continue
		}
		sum, ok := file.Hashes["sha256"]
		if !ok || len(sum) != 32 || file.Length < 0 {
			continue
		}
		releases = append(releases, artifact.Release{
			Project: project, Version: version, Format: format,
			Digest: artifact.NewDigest([32]byte(sum)), Length: file.Length,
		})
	}
	slices.SortFunc(releases, func(a, b artifact.Release) int { return artifact.CompareVersions(a.Version, b.Version) })
	return releases
}

// endedField is a field of ours in targets, which is signed one level above every project. It maps a project to a version
// of its metadata: files up to that version no longer count, even if they are signed. A snapshot never forgets a
// file, so this is how a project that was removed, and is added again, begins without what it said before.
const endedField = "ended"

// Ended reads from targets up to which version the metadata of projects counts no longer.
func Ended(targets *Role) (map[string]int64, error) { return fieldOf[int64](targets, endedField) }

// End writes into targets, to be signed, that the metadata of a project up to a version counts no longer.
func End(targets *Role, project string, version int64) error {
	all, err := Ended(targets)
	if err != nil {
		return malformed(MetaName(targetsRole), err)
	}
	all[project] = max(all[project], version)
	return setField(targets, endedField, all)
}

// Last is the highest version of a project's metadata that the snapshot names; 0 for a project that never published.
func (c *Client) Last(project string) int64 {
	version := int64(0)
	for _, role := range []string{project, HeadRole(project)} {
		if meta := c.set.Snapshot.Signed.Meta[MetaName(role)]; meta != nil {
			version = max(version, meta.Version)
		}
	}
	return version
}

// Over reports whether all that the snapshot names of a project counts no longer, as targets says.
func (c *Client) Over(project string) (bool, error) {
	targets := c.set.Targets[targetsRole]
	if targets == nil || c.set.Snapshot == nil {
		return false, nil
	}
	ended, err := Ended(targets)
	if err != nil {
		return false, malformed(MetaName(targetsRole), fmt.Errorf("reading which projects have ended: %w", err))
	}
	version, has := ended[project]
	return has && c.Last(project) <= version, nil
}
