package salt

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/jinja"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func randomFilters() map[string]jinja.Filter {
	v, seed := jinja.Arg("value"), jinja.Opt("seed", nil)
	size, hashType := jinja.Opt("size", 9999999999), jinja.Opt("hash_type", nil)
	return map[string]jinja.Filter{
		"rand_str":       jinja.Define("rand_str", randomHash, size, hashType),
		"random_hash":    jinja.Define("random_hash", randomHash, size, hashType),
		"random_sample":  jinja.Define("random_sample", randomSample, v, jinja.Arg("size"), seed),
		"random_shuffle": jinja.Define("random_shuffle", randomShuffle, v, seed),
		"random_str":     jinja.Define("random_str", randomText, jinja.Opt("size", 32)),
	}
}

func randomHash(c *jinja.Call) (any, error) {
	size, err := c.Int(0)
	if err != nil {
		return nil, err
	}
	if size < 0 {
		return nil, valueError("empty range for randrange()")
	}
	algorithm, err := hashOf(c, 1)
	if err != nil {
		return nil, err
	}
	n := rand.Uint64()
	if size < math.MaxInt {
		n %= uint64(size) + 1
	}
	h := algorithm()
	h.Write([]byte(strconv.FormatUint(n, 10)))
	return hex.EncodeToString(h.Sum(nil)), nil
}

// hashOf returns the algorithm that an argument names, or MD5.
func hashOf(c *jinja.Call, i int) (func() hash.Hash, error) {
	known := map[string]func() hash.Hash{
		"md5": md5.New, "sha1": sha1.New, "sha224": sha256.New224, "sha256": sha256.New, "sha384": sha512.New384,
		"sha512": sha512.New,
	}
	given, err := c.Bool(i)
	if !given || err != nil {
		return md5.New, err
	}
	name, err := c.Text(i)
	if err != nil {
		return nil, err
	}
	if h, ok := known[name]; ok {
		return h, nil
	}
	return nil, &jinja.Failure{
		Class: "AttributeError", Message: "module 'hashlib' has no attribute " + value.Repr(name),
		Hint: diag.DidYouMean(name, []string{"md5", "sha1", "sha224", "sha256", "sha384", "sha512"}),
	}
}

func randomText(c *jinja.Call) (any, error) {
	size, err := c.Int(0)
	if err != nil {
		return nil, err
	}
	if size < 0 {
		return nil, valueError("negative argument not allowed")
	}
	if err := c.Work(size); err != nil {
		return nil, err
	}
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return base64.StdEncoding.EncodeToString(b)[:size], nil
}

func randomShuffle(c *jinja.Call) (any, error) {
	n, err := c.Length(0)
	if err != nil {
		return nil, err
	}
	return sample(c, n, 1)
}

func randomSample(c *jinja.Call) (any, error) {
	n, err := c.Int(1)
	if err != nil {
		return nil, err
	}
	return sample(c, n, 2)
}

// sample returns n random items of the first argument, always the same ones for the same seed.
func sample(c *jinja.Call, n, seed int) (any, error) {
	switch c.Args[0].(type) {
	case *value.List, value.Tuple, string:
	default:
		return nil, typeError("Population must be a sequence.  For dicts or sets, use sorted(d).")
	}
	items, err := c.Items(0)
	if err != nil {
		return nil, err
	}
	r, err := seeded(c, seed)
	if err != nil {
		return nil, err
	}
	drawn, err := r.Sample(items, n)
	return value.NewList(drawn...), err
}

// seeded returns a generator whose seed is the hash of an argument, or one without a seed if that is None.
func seeded(c *jinja.Call, seed int) (*value.Random, error) {
	if c.Args[seed] == nil {
		return value.NewRandom(nil)
	}
	b, err := bytesOf(c, seed)
	if err != nil {
		return nil, err
	}
	sum := sha512.Sum512(b)
	return value.NewRandom(hex.EncodeToString(sum[:]))
}
