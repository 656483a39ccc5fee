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
