package tuf

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"fmt"
	"path"
	"strings"

	"github.com/secure-systems-lab/go-securesystemslib/cjson"
)

// File is a Metadata of any role.
type File interface {
	content() ([]byte, error)
	signatureOf(keyID string) []byte
}

// content returns the signed bytes.
func (m *Metadata[T]) content() ([]byte, error) { return cjson.EncodeCanonical(m.Signed) }

// signatureOf returns the signature made with a key; nil if there is none.
func (m *Metadata[T]) signatureOf(keyID string) []byte {
	for _, s := range m.Signatures {
		if s.KeyID == keyID {
			return s.Signature
		}
	}
	return nil
}

// VerifyDelegate checks that a file of this role is signed by enough of the keys that this root, or these targets,
// authorize. The error for too few signatures is a *SignatureError.
func (m *Metadata[T]) VerifyDelegate(role string, file File) error {
	may, keys, err := m.delegation(role)
	if err != nil {
		return err
	}
	if len(may.KeyIDs) == 0 {
		return fmt.Errorf("no key may sign %s", role)
	}
	if may.Threshold < 1 {
		return fmt.Errorf("the threshold of %s is %d", role, may.Threshold)
	}
	content, err := file.content()
	if err != nil {
		return err
	}
	// A key with two IDs counts once, so keys are compared by their bytes.
	signers := map[[sha256.Size]byte]bool{}
	for _, id := range may.KeyIDs {
		key := keys[id]
		if key == nil {
			return fmt.Errorf("key %s, which may sign %s, does not exist", id, role)
		}
		public, err := key.public()
		if err != nil {
			return fmt.Errorf("key %s: %w", id, err)
		}
		der, err := x509.MarshalPKIXPublicKey(public)
		if err != nil {
			return fmt.Errorf("key %s: %w", id, err)
		}
		if signature := file.signatureOf(id); len(signature) > 0 && key.signed(public, content, signature) {
			signers[sha256.Sum256(der)] = true
		}
	}
	if len(signers) < may.Threshold {
		return &SignatureError{Role: role, Have: len(signers), Want: may.Threshold}
	}
	return nil
}

// delegation returns the keys of a role and the number of signatures that it needs.
func (m *Metadata[T]) delegation(role string) (may Role, keys map[string]*Key, err error) {
	absent := fmt.Errorf("no metadata delegates %s", role)
	switch signed := any(&m.Signed).(type) {
	case *RootType:
		if may := signed.Roles[role]; may != nil {
			return *may, signed.Keys, nil
		}
	case *TargetsType:
		d := signed.Delegations
		if d == nil {
			break
		}
		for _, r := range d.Roles {
			if r.Name == role {
				return Role{KeyIDs: r.KeyIDs, Threshold: r.Threshold}, d.Keys, nil
			}
		}
		if d.Roles == nil && d.SuccinctRoles != nil {
			return Role{KeyIDs: d.SuccinctRoles.KeyIDs, Threshold: d.SuccinctRoles.Threshold}, d.Keys, nil
		}
	}
	return Role{}, nil, absent
}

// Matches reports whether the role may list a file. A * or ? of a pattern matches no slash.
func (r *DelegatedRole) Matches(target string) bool {
	for _, pattern := range r.Paths {
		if matches(strings.Split(pattern, "/"), strings.Split(target, "/")) {
			return true
		}
	}
	if len(r.Paths) > 0 {
		return false
	}
	sum := sha256.Sum256([]byte(target))
	digits := HexBytes(sum[:]).String()
	for _, prefix := range r.PathHashPrefixes {
		if strings.HasPrefix(digits, prefix) {
			return true
		}
	}
	return false
}

func matches(pattern, target []string) bool {
	if len(pattern) != len(target) {
		return false
	}
	for i := range pattern {
		if ok, err := path.Match(pattern[i], target[i]); err != nil || !ok {
			return false
		}
	}
	return true
}

// VerifyLengthHashes checks that data is the described file, as far as length and digests are given. The error for
// another file is a *ContentError.
func (f *MetaFiles) VerifyLengthHashes(data []byte) error {
	for algorithm, want := range f.Hashes {
		if err := verifyHash(algorithm, want, data); err != nil {
			return err
		}
	}
	if f.Length != 0 && f.Length != int64(len(data)) {
		return &ContentError{Msg: fmt.Sprintf("it has %d bytes, and %d were signed", len(data), f.Length)}
	}
	return nil
}

func verifyHash(algorithm string, want, data []byte) error {
	var got []byte
	switch algorithm {
	case "sha256":
		sum := sha256.Sum256(data)
		got = sum[:]
	case "sha512":
		sum := sha512.Sum512(data)
		got = sum[:]
	default:
		return &ContentError{Msg: fmt.Sprintf("its digest is of the unknown algorithm %q", algorithm)}
	}
	if !bytes.Equal(got, want) {
		return &ContentError{Msg: fmt.Sprintf("its %s is %x, and %x was signed", algorithm, got, want)}
	}
	return nil
}
