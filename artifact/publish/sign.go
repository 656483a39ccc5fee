package publish

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/secure-systems-lab/go-securesystemslib/cjson"

	"github.com/corpus-agent/corpus-agent/artifact/publish/keyring"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// KeysFor returns the available keys that may sign a role. If they are too few, the error is a *Short.
func (p *Publisher) KeysFor(role string, may trust.Delegation) ([]keyring.Key, error) {
	good, others, err := p.AtHand(role, may)
	if err != nil {
		return nil, err
	}
	if len(good) < may.Threshold || len(good) == 0 {
		return nil, &Short{Role: role, May: may, Have: len(good), Others: others, Advice: diag.HintOf(p.Keys.Missing(role))}
	}
	return good, nil
}

// AtHand reads the role's keys, and returns those that may sign it and the others.
func (p *Publisher) AtHand(role string, may trust.Delegation) (good, others []keyring.Key, err error) {
	// A rotation moves keys from Waiting to Keys; reading in this order finds all of them.
	waiting, err := p.waiting(role, may)
	if err != nil {
		return nil, nil, err
	}
	keys, err := p.Keys.Keys(role)
	if err != nil {
		return nil, nil, err
	}
	keys = append(keys, waiting...)
	seen := map[string]bool{}
	for _, k := range keys {
		switch {
		case seen[k.ID]:
		case slices.Contains(may.Keys, k.ID):
			good = append(good, k)
		default:
			others = append(others, k)
		}
		seen[k.ID] = true
	}
	return good, others, nil
}

// waiting reads the role's new keys of rotations that are under way. It does not open keys that may not sign yet.
func (p *Publisher) waiting(role string, may trust.Delegation) (keys []keyring.Key, err error) {
	for _, ring := range p.Waiting {
		held, err := ring.Held(role)
		if err != nil {
			return nil, err
		}
		moving, err := ring.Moving(role)
		if err != nil {
			return nil, err
		}
		letIn := slices.ContainsFunc(held, func(id string) bool { return slices.Contains(may.Keys, id) })
		if !letIn && !moving { // while keys are moved, a private key may exist without its public part
			continue
		}
		some, err := ring.Keys(role)
		if err != nil {
			return nil, err
		}
		keys = append(keys, some...)
	}
	return keys, nil
}

// Held lists the IDs of the role's available private keys, without decrypting files.
func (p *Publisher) Held(role string) (ids []string, err error) {
	for _, ring := range append([]keyring.Ring{p.Keys}, p.Waiting...) {
		some, err := ring.Held(role)
		if err != nil {
			return nil, err
		}
		ids = append(ids, some...)
	}
	return ids, nil
}

// Short is the error for a role for which too few keys are available.
type Short struct {
	Role   string
	May    trust.Delegation // who may sign it
	Have   int              // how many of them are available
	Others []keyring.Key    // available keys that may not sign it

	Advice string
}

func (s *Short) Error() string {
	if s.Have == 0 && len(s.Others) > 0 {
		return fmt.Sprintf("%s may not be signed with key %s (%s): %s names other keys", s.Role,
			trust.ShortKey(s.Others[0].ID), s.Others[0].From, s.May.By)
	}
	have := "are"
	if s.Have == 1 {
		have = "is"
	}
	return fmt.Sprintf("%s requires %d of %d keys to sign it, and %d of them %s at hand", s.Role, s.May.Threshold,
		len(s.May.Keys), s.Have, have)
}

// Hint describes how people who have the keys sign together.
func (s *Short) Hint() string {
	if s.Have > 0 || s.May.Threshold > 1 {
		return diag.Draft.Coded(fmt.Sprintf(
			"write a draft: `corpus export %s -o FILE` for what is there, or the command that changes it with --draft FILE "+
				"where it has that flag; let the others run `corpus sign FILE`, then `corpus import FILE`", s.exported()))
	}
	return diag.Keys.Coded(s.Advice)
}

// exported returns the role to make a draft of. Snapshot and timestamp have no drafts; the root has their thresholds.
func (s *Short) exported() string {
	if s.Role == tuf.RoleSnapshot || s.Role == tuf.RoleTimestamp {
		return tuf.RoleRoot
	}
	return s.Role
}

// Sign returns the file of a role, with signatures of these keys and no others. It returns an error for a file that is
// too large for readers.
func Sign[T tuf.Roles](role *tuf.Metadata[T], keys []keyring.Key) ([]byte, error) {
	role.Signatures = []tuf.Signature{}
	if err := fits(role, len(keys)); err != nil {
		return nil, err
	}
	if err := AddSignatures(role, keys); err != nil {
		return nil, err
	}
	return role.ToBytes()
}

// AddSignatures signs with each key that has not signed yet. In contrast to the library's function, it returns the
// reason why a key could not sign.
func AddSignatures[T tuf.Roles](role *tuf.Metadata[T], keys []keyring.Key) error {
	payload, err := cjson.EncodeCanonical(role.Signed)
	if err != nil {
		return err
	}
	for _, k := range keys {
		if slices.ContainsFunc(role.Signatures, func(s tuf.Signature) bool { return s.KeyID == k.ID }) {
			continue
		}
		sig, err := k.Sign(payload)
		if err != nil {
			return fmt.Errorf("with the key of %s: %w", k.From, err)
		}
		role.Signatures = append(role.Signatures, tuf.Signature{KeyID: k.ID, Signature: sig})
	}
	return nil
}

// MetaFile returns the entry of a metadata file in the metadata above it. Length and digest limit the bytes that a host
// reads before it verifies a signature.
func MetaFile(version int64, data []byte) *tuf.MetaFiles {
	sum := sha256.Sum256(data)
	file := tuf.MetaFile(version)
	file.Length = int64(len(data))
	file.Hashes = tuf.Hashes{"sha256": sum[:]}
	return file
}

// IDs returns the IDs of keys.
func IDs(keys []*tuf.Key) ([]string, error) {
	list := []string{}
	for _, k := range keys {
		id, err := k.ID()
		if err != nil {
			return nil, err
		}
		list = append(list, id)
	}
	return list, nil
}

// FindKey returns the one key whose ID begins with id.
func FindKey(role, id string, may trust.Delegation) (string, error) {
	var found []string
	for _, full := range may.Keys {
		if id != "" && strings.HasPrefix(full, strings.ToLower(id)) {
			found = append(found, full)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	if len(found) == 0 {
		return "", NewMistake(diag.Keys, "`corpus root show` lists them", "no key of %s has an ID that begins with %q",
			role, id)
	}
	return "", NewMistake(diag.Keys, "`corpus root show` lists them", "%s of %s have an ID that begins with %q",
		diag.Count(len(found), "key"), role, id)
}

// SameRoles reports whether two roots have the same keys and thresholds for every role.
func SameRoles(a, b *RootRole) bool {
	return maps.EqualFunc(a.Signed.Roles, b.Signed.Roles, func(x, y *tuf.Role) bool {
		return x.Threshold == y.Threshold && slices.Equal(x.KeyIDs, y.KeyIDs)
	})
}
