package trust

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
)

// Fields that this project adds to signed metadata, where The Update Framework allows any.
const (
	channelsField = "channels" // project role: channel name -> Pointer
	yanksField    = "yanked"   // project role: version -> Yank
	createdField  = "created"  // timestamp: when it was signed
)

// Role is a targets role: the top one or a project's.
type Role = tuf.Metadata[tuf.TargetsType]

// Pointer has the release that a channel points at. The project role's version and expiry are the channel's too; Serial
// counts the moves of this one channel.
type Pointer struct {
	Version string          `json:"version"`
	Digest  artifact.Digest `json:"digest"`
	Serial  int64           `json:"serial"`
	// Proof is the proof that the channel's Requirement demands; empty if there is no requirement.
	Proof json.RawMessage `json:"proof,omitempty"`
	// Rollout describes how hosts take the release, on a channel with a plan; nil if they all take it at once.
	Rollout *rollout.Start `json:"rollout,omitempty"`
	// Moved has the person, time and command of the move to this release; nil for moves of older programs.
	Moved *rollout.Move `json:"moved,omitempty"`
}

// Yank is the withdrawal of a release.
type Yank struct {
	Digest artifact.Digest `json:"digest"`
	Reason string          `json:"reason,omitempty"`
	At     time.Time       `json:"at"`
}

// Channels returns the channels of a project's role, without those whose names are invalid.
func Channels(role *Role) (map[string]Pointer, error) {
	return named(role, channelsField, func(name string, _ Pointer) bool { return artifact.CheckChannel(name) == nil })
}

// SetChannels sets the channels of a project's role before it is signed.
func SetChannels(role *Role, channels map[string]Pointer) error {
	return setField(role, channelsField, channels)
}

// Yanks returns a project's withdrawn releases by version, without those whose versions are invalid.
func Yanks(role *Role) (map[string]Yank, error) {
	return named(role, yanksField, func(version string, _ Yank) bool { return artifact.CheckVersion(version) == nil })
}

// named is like fieldOf without the entries for which good returns false.
func named[V any](role *Role, field string, good func(string, V) bool) (map[string]V, error) {
	values, err := fieldOf[V](role, field)
	maps.DeleteFunc(values, func(name string, v V) bool { return !good(name, v) })
	return values, err
}

// SetYanks sets a project's withdrawn releases before it is signed.
func SetYanks(role *Role, yanks map[string]Yank) error { return setField(role, yanksField, yanks) }

// fieldOf reads one of this project's own fields; it is empty and never nil if the role has none.
func fieldOf[V any](role *Role, name string) (map[string]V, error) {
	values := map[string]V{}
	return values, readField(role, name, &values)
}

// readField reads one of this project's own fields into value, which is unchanged if the role has none.
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

// followsField is a field of a project's metadata, a follows. Files of publishers that lost a race stay in the store,
// and nothing else tells them from those that a snapshot has named.
const followsField = "follows"

// follows names the version of a project's metadata that another version replaces. It has the version that it is about:
// an older program writes the field again in later versions.
type follows struct {
	Version int64 `json:"version"`
	Before  int64 `json:"before"`
}

// SetFollows sets the version that the project's metadata has, and that it replaces, before it is signed.
func SetFollows(role *Role, version, before int64) error {
	role.Signed.Version = version
	return setField(role, followsField, follows{version, before})
}

// Follows returns the version that a project's metadata replaces, 0 for the first one. ok is false if it does not say
// so, since an older program signed it.
func Follows(role *Role) (before int64, ok bool) {
	var f follows
	if err := readField(role, followsField, &f); err != nil || f.Version != role.Signed.Version {
		return 0, false
	}
	return f.Before, f.Before >= 0 && f.Before < f.Version
}

// Releases returns the releases that a project's role signs, ordered by version. Targets that are not artifacts of
// the project are left out.
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
	structsort.Func(releases, func(a, b artifact.Release) int { return artifact.CompareVersions(a.Version, b.Version) })
	return releases
}

// endedField is a field of targets, which is signed one level above every project. It maps a project to a version of
// its metadata; files up to that version are invalid, even if they are signed. A snapshot never forgets a file, so a
// project that was removed and is added again needs this to start empty.
const endedField = "ended"

// Ended returns the version of each ended project up to which its metadata is invalid.
func Ended(targets *Role) (map[string]int64, error) { return fieldOf[int64](targets, endedField) }

// End marks a project's metadata up to a version as invalid before targets is signed.
func End(targets *Role, project string, version int64) error {
	all, err := Ended(targets)
	if err != nil {
		return malformed(MetaName(targetsRole), err)
	}
	all[project] = max(all[project], version)
	return setField(targets, endedField, all)
}

// Last returns the highest version of a project's metadata in the snapshot; 0 for a project that never published.
func (c *Client) Last(project string) int64 {
	version := int64(0)
	for _, role := range []string{project, HeadRole(project)} {
		if meta := c.set.Snapshot.Signed.Meta[MetaName(role)]; meta != nil {
			version = max(version, meta.Version)
		}
	}
	return version
}

// Over reports whether all of a project's metadata in the snapshot is invalid according to targets.
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
