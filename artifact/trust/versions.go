package trust

import (
	"encoding/json"
	"fmt"
	"maps"
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

// sealKey is the key, which no project has, of the digest of all other entries of the file. A version whose digest a
// failing disk has changed would be refused for ever.
const sealKey = ""

// seal returns the digest of the entries.
func (v versionDigests) seal() (artifact.Digest, error) {
	data, err := json.Marshal(v)
	return digestOf(data), err
}

// readVersions decodes the file. whole is false if it is missing or damaged, or an agent wrote it that did not seal it;
// all is nil unless its entries can be used.
func readVersions(data []byte) (all versionDigests, whole bool) {
	if json.Unmarshal(data, &all) != nil || all == nil {
		return nil, false
	}
	sealed := all[sealKey]
	delete(all, sealKey)
	if len(sealed) == 0 {
		return all, false
	}
	if digest, err := all.seal(); err != nil || sealed[0].Digest != digest {
		return nil, false
	}
	return all, true
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
	seen, whole := readVersions(data)
	lost := seen == nil // start again
	if lost {
		seen = versionDigests{}
	}
	for _, k := range known {
		if lost && c.knew {
			seen.add(k)
		}
	}
	before, added := seen.add(r)
	if !whole || added {
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
	digest, err := v.seal()
	if err != nil {
		return err
	}
	v = maps.Clone(v)
	v[sealKey] = []versionDigest{{Digest: digest}}
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
