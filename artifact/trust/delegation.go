package trust

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/corpus-agent/corpus-agent/artifact/tuf"
)

// Delegation lists the keys that may sign a role.
type Delegation struct {
	By        string   `json:"by"`        // the delegating file, with its version
	Keys      []string `json:"keys"`      // IDs of the keys
	Threshold int      `json:"threshold"` // required number of signatures
}

// Delegation returns the keys that may sign a role in the store; the zero value if none may.
func (c *Client) Delegation(role string) Delegation {
	if slices.Contains(tuf.TopRoles(), role) {
		return RootDelegation(c.set.Root, role)
	}
	for _, d := range c.delegations() {
		if d.Name == role {
			return Delegation{By: fmt.Sprintf("targets %d", c.set.Targets[targetsRole].Signed.Version), Keys: d.KeyIDs,
				Threshold: d.Threshold}
		}
	}
	return Delegation{}
}

// RootDelegation returns the keys that may sign a role according to a root.
func RootDelegation(root *tuf.Metadata[tuf.RootType], role string) Delegation {
	r := root.Signed.Roles[role]
	if r == nil {
		return Delegation{}
	}
	return Delegation{By: fmt.Sprintf("root %d", root.Signed.Version), Keys: r.KeyIDs, Threshold: r.Threshold}
}

// lostKeys reports whether a root removed a key from snapshot or timestamp. An attacker with the key may have published
// versions so high that no valid one could follow, so hosts then accept any version again.
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

// SignedBy returns the IDs of the keys that a metadata file claims to be signed with, unverified.
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

// ShortKey returns the start of a key's ID, enough for people to tell keys apart.
func ShortKey(id string) string {
	return Printable(id[:min(len(id), 8)])
}

// Printable replaces the characters of foreign text that could move a terminal's cursor or reorder
// letters.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}

// keyList names up to eight keys in a message.
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

// Signature is the signature of the project metadata that a host keeps, verified when it was fetched.
type Signature struct {
	Project  string             `json:"project"`
	Keys     []string           `json:"keys"` // IDs of the keys that signed
	Version  int64              `json:"version"`
	Expires  time.Time          `json:"expires"`
	Channels map[string]Pointer `json:"channels"`
}

// SignatureOf reads the signature of a project from the metadata kept in dir, without reading the store. It returns nil
// if the host has seen nothing of the project.
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

// SignsProject reports whether a role has enough signatures of the keys that may sign a project now. The role may be an
// earlier one that has expired.
func (c *Client) SignsProject(project string, role *Role) bool {
	targets := c.set.Targets[targetsRole]
	return targets != nil && targets.VerifyDelegate(project, role) == nil
}
