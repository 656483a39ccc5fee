package salt

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"strings"
	"unicode/utf8"

	"github.com/corpus-agent/corpus-agent/state/jinja"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func encodingFilters() map[string]jinja.Filter {
	text := jinja.Arg("instr")
	return map[string]jinja.Filter{
		"base64_decode": jinja.Define("base64_decode", base64Decode, text),
		"base64_encode": jinja.Define("base64_encode", base64Encode, text),
		"hmac": jinja.Define("hmac", hmacVerify, jinja.Arg("string"), jinja.Arg("shared_secret"),
			jinja.Arg("challenge_hmac")),
		"hmac_compute": jinja.Define("hmac_compute", hmacCompute, jinja.Arg("string"), jinja.Arg("shared_secret")),
		"md5":          jinja.Define("md5", digest(md5.New), text),
		"sha1":         jinja.Define("sha1", digest(sha1.New), text),
		"sha256":       jinja.Define("sha256", digest(sha256.New), text),
		"sha512":       jinja.Define("sha512", digest(sha512.New), text),
		"to_bytes": jinja.Define("to_bytes", toBytes, jinja.Arg("s"), jinja.Opt("encoding", nil),
			jinja.Opt("errors", "strict")),
		"uuid": jinja.Define("uuid", uuid, jinja.Arg("val")),

		"json_decode_dict": jinja.Define("json_decode_dict", recode(decoded), jinja.Arg("data")),
		"json_decode_list": jinja.Define("json_decode_list", recode(decoded), jinja.Arg("data")),
		"json_encode_dict": jinja.Define("json_encode_dict", recode(encoded), jinja.Arg("data")),
		"json_encode_list": jinja.Define("json_encode_list", recode(encoded), jinja.Arg("data")),
	}
}

// bytesOf returns an argument that must be str or bytes, as bytes.
func bytesOf(c *jinja.Call, i int) ([]byte, error) {
	if b, ok := c.Args[i].([]byte); ok {
		return b, nil
	}
	s, err := c.Text(i)
	return []byte(s), err
}

func digest(algorithm func() hash.Hash) func(c *jinja.Call) (any, error) {
	return func(c *jinja.Call) (any, error) {
		b, err := bytesOf(c, 0)
		h := algorithm()
		h.Write(b)
		return hex.EncodeToString(h.Sum(nil)), err
	}
}

func base64Encode(c *jinja.Call) (any, error) {
	b, err := bytesOf(c, 0)
	return base64.StdEncoding.EncodeToString(b), err
}

// base64Decode returns a string if the result is valid text, and bytes otherwise. It skips invalid characters, as
// Python does.
func base64Decode(c *jinja.Call) (any, error) {
	b, err := bytesOf(c, 0)
	if err != nil {
		return nil, err
	}
	kept := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '+' || r == '/' || r == '=' {
			return r
		}
		return -1
	}, string(b))
	data, err := base64.StdEncoding.DecodeString(kept)
	if err != nil {
		return nil, &jinja.Failure{Class: "binascii.Error", Message: "Incorrect padding"}
	}
	if utf8.Valid(data) {
		return string(data), nil
	}
	return data, nil
}

func signature(c *jinja.Call) ([]byte, error) {
	message, err := bytesOf(c, 0)
	if err != nil {
		return nil, err
	}
	key, err := bytesOf(c, 1)
	mac := hmac.New(sha256.New, key)
	mac.Write(message)
	return mac.Sum(nil), err
}

func hmacVerify(c *jinja.Call) (any, error) {
	sum, err := signature(c)
	if err != nil {
		return nil, err
	}
	challenge, err := bytesOf(c, 2)
	return hmac.Equal([]byte(base64.StdEncoding.EncodeToString(sum)), challenge), err
}

func hmacCompute(c *jinja.Call) (any, error) {
	sum, err := signature(c)
	return hex.EncodeToString(sum), err
}

func toBytes(c *jinja.Call) (any, error) {
	b, err := bytesOf(c, 0)
	return b, err
}

// namespaceUUID is the namespace of Salt's UUIDs.
var namespaceUUID = [16]byte{0x91, 0x63, 0x3e, 0xbf, 0x1c, 0x86, 0x5e, 0x33, 0x93, 0x5a, 0x28, 0x06, 0x1f, 0x4b, 0x48,
	0x0e}

// uuid returns the UUID of version 5 of a text.
func uuid(c *jinja.Call) (any, error) {
	b, err := bytesOf(c, 0)
	if err != nil {
		return nil, err
	}
	sum := sha1.Sum(append(namespaceUUID[:], b...))
	u := sum[:16]
	u[6] = u[6]&0x0f | 0x50
	u[8] = u[8]&0x3f | 0x80
	h := hex.EncodeToString(u)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:], nil
}

func recode(leaf func(v any) any) func(c *jinja.Call) (any, error) {
	return func(c *jinja.Call) (any, error) { return recoded(c, c.Args[0], leaf, 0) }
}

// recoded returns a copy of v in which leaf is applied to everything that is not a collection. Tuples become lists.
func recoded(c *jinja.Call, v any, leaf func(v any) any, depth int) (any, error) {
	const deepest = 500
	if err := c.Work(1); err != nil || depth > deepest {
		return v, err
	}
	switch v := v.(type) {
	case *value.List:
		return recodedItems(c, v.Items, leaf, depth)
	case value.Tuple:
		return recodedItems(c, v, leaf, depth)
	case *value.Map:
		m := value.MakeMap(v.Len()).Plain()
		for k, item := range v.All() {
			item, err := recoded(c, item, leaf, depth+1)
			if err != nil {
				return nil, err
			}
			if err := m.SetKey(leaf(k), item); err != nil {
				return nil, err
			}
		}
		return m, nil
	}
	return leaf(v), nil
}

func recodedItems(c *jinja.Call, items []any, leaf func(v any) any, depth int) (any, error) {
	l := value.NewList()
	for _, item := range items {
		item, err := recoded(c, item, leaf, depth+1)
		if err != nil {
			return nil, err
		}
		l.Append(item)
	}
	return l, nil
}

func decoded(v any) any {
	if b, ok := v.([]byte); ok && utf8.Valid(b) {
		return string(b)
	}
	return v
}

func encoded(v any) any {
	if s, ok := v.(string); ok {
		return []byte(s)
	}
	return v
}
