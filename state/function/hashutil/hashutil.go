// Package hashutil implements hashutil.*: digests, signatures by a shared secret, and base64.
package hashutil

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/value"
)

type hashutil struct{ *function.Facts }

// Functions returns the functions of hashutil that templates may call.
func Functions(f *function.Facts) function.Table {
	h := hashutil{f}
	return function.Table{
		"hashutil.digest":      function.Of("instr, checksum='md5'", digest),
		"hashutil.digest_file": function.Of("infile, checksum='md5'", h.digestFile),
		"hashutil.md5_digest": function.Of("instr", func(text string) (string, error) {
			return function.HexDigest("md5", []byte(text))
		}),
		"hashutil.sha256_digest": function.Of("instr", func(text string) (string, error) {
			return function.HexDigest("sha256", []byte(text))
		}),
		"hashutil.sha512_digest": function.Of("instr", func(text string) (string, error) {
			return function.HexDigest("sha512", []byte(text))
		}),
		"hashutil.base64_b64encode": function.Of("instr", func(text string) string {
			return base64.StdEncoding.EncodeToString([]byte(text))
		}),
		"hashutil.base64_b64decode":    function.Of("instr", decode64),
		"hashutil.base64_encodestring": function.Of("instr", func(text string) string { return encode64Lines([]byte(text)) }),
		"hashutil.base64_decodestring": function.Of("instr", decode64),
		"hashutil.base64_encodefile":   function.Of("fname", h.encodeFile),
		"hashutil.hmac_signature":      function.Of("string, shared_secret, challenge_hmac", hmacMatches),
		"hashutil.hmac_compute":        function.Of("string, shared_secret", hmacHex),
		"hashutil.github_signature":    function.Of("string, shared_secret, challenge_hmac", githubMatches),
	}
}

func digest(text, form string) (string, error) {
	if !slices.Contains([]string{"md5", "sha256", "sha512"}, form) {
		return "", fmt.Errorf("%q is not md5, sha256 or sha512", form)
	}
	return function.HexDigest(form, []byte(text))
}

func (h hashutil) digestFile(file, form string) (string, error) {
	text, err := function.ReadText(h.Host, file)
	if err != nil {
		return "", err
	}
	return digest(text, form)
}

func (h hashutil) encodeFile(file string) (string, error) {
	text, err := function.ReadText(h.Host, file)
	return encode64Lines([]byte(text)), err
}

// encode64Lines encodes data as base64, in lines of 76 characters as in mail.
func encode64Lines(data []byte) string {
	var b strings.Builder
	for chunk := range slices.Chunk(data, 57) {
		b.WriteString(base64.StdEncoding.EncodeToString(chunk))
		b.WriteByte('\n')
	}
	return b.String()
}

// decode64 decodes base64. It skips invalid characters, as Python does, and returns bytes if the result is not
// text.
func decode64(text string) (any, error) {
	clean := strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("+/=", r)) {
			return r
		}
		return -1
	}, text)
	data, err := base64.StdEncoding.DecodeString(clean)
	if err != nil {
		return nil, value.Raise("binascii.Error", "it is not base64")
	}
	if utf8.Valid(data) {
		return string(data), nil
	}
	return data, nil
}

func hmacSum(text, secret string, form func() hash.Hash) []byte {
	mac := hmac.New(form, []byte(secret))
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

func hmacHex(text, secret string) string {
	return hex.EncodeToString(hmacSum(text, secret, sha256.New))
}

func hmacMatches(text, secret, challenge string) bool {
	sum := base64.StdEncoding.EncodeToString(hmacSum(text, secret, sha256.New))
	return hmac.Equal([]byte(sum), []byte(challenge))
}

func githubMatches(text, secret, challenge string) (bool, error) {
	form, sum, ok := strings.Cut(challenge, "=")
	make := function.Hashes()[form]
	if !ok || make == nil {
		return false, errors.New("the challenge does not have the form sha256=DIGEST")
	}
	return hmac.Equal([]byte(hex.EncodeToString(hmacSum(text, secret, make))), []byte(sum)), nil
}
