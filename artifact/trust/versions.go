package trust

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// versionsFile is the file with the digests of the versions that a host's channels have named.
const versionsFile = "versions.json"

// mostVersions is the maximum number of versions of a project that a host remembers.
const mostVersions = 256

// versionDigests are the digests of projects' versions, in the order in which the host saw them.
type versionDigests map[string][]versionDigest

type versionDigest struct {
	Version string          `json:"version"`
	Digest  artifact.Digest `json:"digest"`
}

// SameBytes returns an error for a release whose version has another digest on this host: the store was restored from
// an older copy, and a publisher, unaware of the version, used it again. Otherwise it adds the release to the host's
// versions. known are releases that the host has recorded elsewhere; they are used if versions.json is missing or
// damaged and the host has read this store before.
func (c *Client) SameBytes(r artifact.Release, known ...artifact.Release) error {
	data, err := c.seen.load(versionsFile)
	if err != nil {
		return err
	}
	var seen versionDigests
	changed := json.Unmarshal(data, &seen) != nil || seen == nil // missing or damaged: start again
	if changed {
		seen = versionDigests{}
	}
	for _, k := range known {
		if changed && c.knew {
			seen.add(k)
		}
	}
	before, added := seen.add(r)
	if changed || added {
		if err := c.keepVersions(seen); err != nil {
			return err
		}
	}
	if before == r.Digest {
		return nil
	}
	return diag.Version.Hint(&Refused{Check: CheckVersion, Of: r.String(),
		Err: fmt.Errorf("this host knows version %s with digest %s, and the store now signs %s under it",
			r.Version, before, r.Digest)},
		"a version never gets other bytes: the store was restored from an older copy, and %s was published again; publish "+
			"these files as a new version (docs/trust.md, \"The store is restored from a backup\")", r.Version)
}

func (c *Client) keepVersions(v versionDigests) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return c.seen.keep(versionsFile, data)
}

// add adds a release unless its version is known, and returns the digest of the version.
func (v versionDigests) add(r artifact.Release) (digest artifact.Digest, added bool) {
	if r.Local != "" {
		return r.Digest, false
	}
	list := v[r.Project]
	if i := slices.IndexFunc(list, func(d versionDigest) bool { return d.Version == r.Version }); i >= 0 {
		return list[i].Digest, false
	}
	list = append(list, versionDigest{Version: r.Version, Digest: r.Digest})
	v[r.Project] = list[max(0, len(list)-mostVersions):]
	return r.Digest, true
}
