package pkgrepo

import (
	"crypto/sha1" //nolint:gosec // fingerprints of version 4 are defined by it; nothing is trusted for one
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

var errNoKey = errors.New("this is not an OpenPGP public key")

// dearmor returns the bytes of a key, decoded if it is in ASCII armor. Several blocks are concatenated.
func dearmor(data []byte) ([]byte, error) {
	const begin, end = "-----BEGIN PGP PUBLIC KEY BLOCK-----", "-----END PGP PUBLIC KEY BLOCK-----"
	text := strings.ReplaceAll(string(data), "\r", "")
	if !strings.Contains(text, begin) {
		return data, nil
	}
	var plain []byte
	for _, block := range strings.Split(text, begin)[1:] {
		block, _, ok := strings.Cut(block, end)
		if !ok {
			return nil, errNoKey
		}
		part, err := base64.StdEncoding.DecodeString(armourBody(block))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errNoKey, err)
		}
		plain = append(plain, part...)
	}
	return plain, nil
}

// armourBody returns the base64 text of a block without its headers, which end with an empty line, and its
// checksum, which starts with =.
func armourBody(block string) string {
	if _, body, ok := strings.Cut(strings.TrimPrefix(block, "\n"), "\n\n"); ok &&
		strings.Contains(block[:len(block)-len(body)], ":") {
		block = body
	}
	var b strings.Builder
	for line := range strings.SplitSeq(block, "\n") {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "=") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// fingerprints returns the fingerprints of all keys and subkeys in upper-case hexadecimal. A key ID is the end
// of a fingerprint.
func fingerprints(data []byte) ([]string, error) {
	data, err := dearmor(data)
	if err != nil {
		return nil, err
	}
	var prints []string
	for len(data) > 0 {
		tag, body, rest, err := packet(data)
		if err != nil {
			return nil, err
		}
		if data = rest; (tag == 6 || tag == 14) && len(body) > 0 && body[0] == 4 && len(body) < 1<<16 {
			sum := sha1.New() //nolint:gosec // as above
			sum.Write([]byte{0x99, byte(len(body) >> 8), byte(len(body))})
			sum.Write(body)
			prints = append(prints, strings.ToUpper(hex.EncodeToString(sum.Sum(nil))))
		}
	}
	if len(prints) == 0 {
		return nil, errNoKey
	}
	return prints, nil
}

// packet splits off the first packet (RFC 9580, section 4.2).
func packet(data []byte) (tag byte, body, rest []byte, err error) {
	if len(data) < 2 || data[0]&0x80 == 0 {
		return 0, nil, nil, errNoKey
	}
	header, size := 0, 0
	if data[0]&0x40 != 0 {
		tag = data[0] & 0x3f
		header, size = newLength(data)
	} else {
		tag = data[0] >> 2 & 0x0f
		header, size = oldLength(data)
	}
	if header == 0 || size < 0 || size > len(data)-header {
		return 0, nil, nil, errNoKey
	}
	return tag, data[header : header+size], data[header+size:], nil
}

// newLength parses the length of a packet in the new format. header is 0 if it is not supported.
func newLength(data []byte) (header, size int) {
	switch first := int(data[1]); {
	case first < 192:
		return 2, first
	case first < 224 && len(data) > 2:
		return 3, (first-192)<<8 + int(data[2]) + 192
	case first == 255 && len(data) > 5:
		return 6, number(data[2:6])
	}
	return 0, 0
}

func oldLength(data []byte) (header, size int) {
	n := 1 << (data[0] & 3)
	if n > 4 || len(data) < 1+n {
		return 0, 0
	}
	return 1 + n, number(data[1 : 1+n])
}

func number(b []byte) int {
	n := 0
	for _, c := range b {
		n = n<<8 | int(c)
	}
	return n
}
