package trust

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/corpus-agent/corpus-agent/artifact/tuf"
)

// Delegation says who may sign a role.
type Delegation struct {
	By        string   `json:"by"`        // the file that says so, with its version
	Keys      []string `json:"keys"`      // IDs
	Threshold int      `json:"threshold"` // how many of them have to
}

// Delegation returns which keys may sign a role in the store as it is now; zero if none may.
func (c *Client) Delegation(role string) Delegation {
	if slices.Contains(tuf.TopRoles(), role) {
		return RootDelegation(c.set.Root, role)
	}
	for _, d := range c.delegations() {
		if d.Name == role {
			return Delegation{By: fmt.Sprintf("targets %d", c.set.Targets[targetsRole].Signed.Version), Keys: d.KeyIDs, Threshold: d.Threshold}
		}
	}
	return Delegation{}
}

// RootDelegation tells whom a root lets sign a role.
func RootDelegation(root *tuf.Metadata[tuf.RootType], role string) Delegation {
	r := root.Signed.Roles[role]
	if r == nil {
		return Delegation{}
	}
	return Delegation{By: fmt.Sprintf("root %d", root.Signed.Version), Keys: r.KeyIDs, Threshold: r.Threshold}
}

// lostKeys reports whether a root took a key away from snapshot or timestamp. A thief of
// the key may have run the versions up so far that no good one could follow, so hosts accept any
// version again.
func lostKeys(before, after *tuf.Metadata[tuf.RootType]) bool {
	for _, role := range []string{tuf.RoleSnapshot, tuf.RoleTimestamp} {
		kept := RootDelegation(after, role).Keys
		for _, id := range RootDelegation(before, role).Keys {
			if !slices.Contains(kept, id) {
				return true
			}
		}
	}
	return false
}

// SignedBy tells whose signatures a metadata file claims to carry, unverified.
func SignedBy(data []byte) []string {
	var file struct {
		Signatures []struct {
			KeyID string `json:"keyid"`
		} `json:"signatures"`
	}
	if DecodeInto(data, &file) != nil {
		return nil
	}
	var ids []string
	for _, s := range file.Signatures {
		ids = append(ids, s.KeyID)
	}
	return ids
}

// ShortKey is enough of a key's ID for a person to tell it from others.
func ShortKey(id string) string {
	return Printable(id[:min(len(id), 8)])
}

// Printable removes from a text of another party what would move a terminal's cursor or reorder its
// letters.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}

// keyList names keys, the first few of them if a file lists many.
func keyList(ids []string) string {
	const most = 8
	var short []string
	for _, id := range ids[:min(len(ids), most)] {
		short = append(short, ShortKey(id))
	}
	if len(ids) > most {
		short = append(short, "others")
	}
	word := "key "
	if len(ids) > 1 {
		word = "keys "
	}
	return word + strings.Join(short, ", ")
}

// Signature is who signed what a host knows of a project, as it was verified when it was fetched.
type Signature struct {
	Project  string             `json:"project"`
	Keys     []string           `json:"keys"` // IDs of the keys that signed
	Version  int64              `json:"version"`
	Expires  time.Time          `json:"expires"`
	Channels map[string]Pointer `json:"channels"`
}

// SignatureOf reads it from what a host keeps in dir, without asking the store. It is nil where
// nothing was seen of the project yet.
func SignatureOf(dir, project string) (*Signature, error) {
	data, err := seen{dir: dir}.load(roleFile(project))
	if data == nil || err != nil {
		return nil, err
	}
	role, err := Decode[tuf.TargetsType](data)
	if err != nil {
		return nil, fmt.Errorf("reading who signed %s: %w", project, err)
	}
	s := Signature{Project: project, Version: role.Signed.Version, Expires: role.Signed.Expires, Keys: []string{}}
	for _, signature := range role.Signatures {
		s.Keys = append(s.Keys, signature.KeyID)
	}
	s.Channels, err = Channels(role)
	return &s, err
}
