package function

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha3"
	"crypto/sha512"
	"encoding/hex"
	"hash"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Hashes returns the hash algorithms by their names in Python.
func Hashes() map[string]func() hash.Hash {
	return map[string]func() hash.Hash{
		"md5": md5.New, "sha1": sha1.New, "sha224": sha256.New224, "sha256": sha256.New, "sha384": sha512.New384,
		"sha512":   sha512.New,
		"sha3_224": func() hash.Hash { return sha3.New224() }, "sha3_256": func() hash.Hash { return sha3.New256() },
		"sha3_384": func() hash.Hash { return sha3.New384() }, "sha3_512": func() hash.Hash { return sha3.New512() },
	}
}

// NewHash returns a hash by its name in Python.
func NewHash(form string) (hash.Hash, error) {
	if make, ok := Hashes()[strings.ToLower(form)]; ok {
		return make(), nil
	}
	names := []string{"md5", "sha1", "sha224", "sha256", "sha384", "sha512"}
	hint := diag.DidYouMean(form, names)
	if hint == "" {
		hint = "use one of " + strings.Join(names, ", ")
	}
	return nil, diag.Call.Hint(value.Raise("ValueError", "there is no hash called %q", form), "%s", hint)
}

// HexDigest returns the digest of data in hexadecimal digits.
func HexDigest(form string, data []byte) (string, error) {
	h, err := NewHash(form)
	if err != nil {
		return "", err
	}
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil)), nil
}
