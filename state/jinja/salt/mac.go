package salt

import (
	"encoding/hex"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/jinja"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// wrapAddress puts brackets around IPv6 addresses, as URLs need them.
func wrapAddress(c *jinja.Call) (any, error) {
	switch c.Args[0].(type) {
	case *value.List, value.Tuple:
	default:
		return bracketed(c.Args[0])
	}
	items, err := c.Items(0)
	if err != nil {
		return nil, err
	}
	for i := range items {
		if items[i], err = bracketed(items[i]); err != nil {
			return nil, err
		}
	}
	return value.NewList(items...), nil
}

func bracketed(v any) (any, error) {
	a, ok := parseAddress(v)
	if !ok || a.version() != 6 {
		return v, nil
	}
	if a.prefix {
		return nil, valueError(value.Repr(v) + " does not appear to be an IPv4 or IPv6 address")
	}
	return "[" + a.String() + "]", nil
}

func macBytes(c *jinja.Call) (any, error) {
	s, err := c.Text(0)
	if err != nil {
		return nil, err
	}
	const bare, separated = 12, 17
	switch len(s) {
	case bare:
	case separated:
		s = strings.ReplaceAll(s, s[2:3], "")
	default:
		return nil, valueError("Invalid MAC address")
	}
	b, err := hex.DecodeString(s)
	if err != nil {
		return nil, valueError("Invalid MAC address")
	}
	return b, nil
}

// makeMAC returns a random hardware address with a prefix.
func makeMAC(c *jinja.Call) (any, error) {
	s, err := c.Str(0)
	for range 3 {
		n := rand.IntN(256)
		s += ":" + strings.ToUpper(strconv.FormatInt(int64(n>>4), 16)+strconv.FormatInt(int64(n&15), 16))
	}
	return s, err
}
