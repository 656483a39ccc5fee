package sshkey

import (
	"crypto"
	_ "crypto/md5" // linked in for the hashes that SLS files may name
	_ "crypto/sha1"
	_ "crypto/sha256"
	_ "crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// HashNamed returns the hash function for fingerprints by name; "" means sha256.
func HashNamed(name string) (crypto.Hash, error) {
	switch strings.ToLower(name) {
	case "", "sha256":
		return crypto.SHA256, nil
	case "md5":
		return crypto.MD5, nil
	case "sha1":
		return crypto.SHA1, nil
	case "sha224":
		return crypto.SHA224, nil
	case "sha384":
		return crypto.SHA384, nil
	case "sha512":
		return crypto.SHA512, nil
	}
	return 0, diag.SSH.Hint(fmt.Errorf("fingerprint_hash_type %s is not known", name),
		"use md5, sha1, sha224, sha256, sha384 or sha512")
}

// Fingerprint returns the hash of a key in the form 16:27:ac, or "" if the text is not a key.
func Fingerprint(text string, with crypto.Hash) string {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return ""
	}
	h := with.New()
	h.Write(raw)
	digits := hex.EncodeToString(h.Sum(nil))
	pairs := make([]string, 0, len(digits)/2)
	for i := 0; i < len(digits); i += 2 {
		pairs = append(pairs, digits[i:i+2])
	}
	return strings.Join(pairs, ":")
}
