// Package random implements random.*: numbers and texts that are random or derived from a seed.
package random

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/value"
)

type random struct{ *function.Facts }

// Functions returns the functions of random that templates may call.
func Functions(f *function.Facts) function.Table {
	r := random{f}
	return function.Table{
		"random.hash": function.Of("value, algorithm='sha512'", func(text, form string) (string, error) {
			return function.HexDigest(form, []byte(text))
		}),
		"random.str_encode": function.Of("value, encoder='base64'", encoded),
		"random.get_str": function.Of(
			"length=20, chars=None, lowercase=True, uppercase=True, digits=True, punctuation=True, whitespace=False, "+
				"printable=False",
			r.text),
		"random.rand_int": function.Of("start=1, end=10, seed=None", r.number),
		"random.seed":     function.Of("range=10, hash=None", r.seeded),
		"random.sample":   function.Of("value, size, seed=None", r.sample),
		"random.shuffle":  function.Of("value, seed=None", r.shuffle),
	}
}

// seeded returns a number below range that is derived from the host's ID, so that it is the same in every run.
func (r random) seeded(below int, seed any) (int, error) {
	if seed == nil {
		seed = r.Grains.Value("id")
	}
	if seed == nil {
		seed = r.ID
	}
	if below < 1 {
		return 0, value.Raise("ValueError", "there is no number below %d to draw", below)
	}
	generator, err := value.NewRandom(seed)
	if err != nil {
		return 0, err
	}
	return generator.Below(below), nil
}

func (random) number(from, to int, seed any) (int, error) {
	generator, err := value.NewRandom(seed)
	if err != nil {
		return 0, err
	}
	return generator.Between(from, to)
}

// sample returns items that are chosen at random, or by a hash of the seed.
func (random) sample(items any, size int, seed *string) (*value.List, error) {
	l, err := sequence(items)
	if err != nil {
		return nil, err
	}
	var from any
	if seed != nil {
		if from, err = function.HexDigest("sha512", []byte(*seed)); err != nil {
			return nil, err
		}
	}
	generator, err := value.NewRandom(from)
	if err != nil {
		return nil, err
	}
	drawn, err := generator.Sample(l, size)
	return value.NewList(drawn...), err
}

func (r random) shuffle(items any, seed *string) (*value.List, error) {
	n, ok := value.Len(items)
	if !ok {
		return nil, function.Expected("a list", items)
	}
	return r.sample(items, n, seed)
}

// sequence returns the items of a list, or the characters of a string.
func sequence(v any) ([]any, error) {
	if s, ok := v.(string); ok {
		var runes []any
		for _, r := range s {
			runes = append(runes, string(r))
		}
		return runes, nil
	}
	l, err := function.List(v)
	if err != nil {
		return nil, err
	}
	return l.Items, nil
}

const longestText = 1 << 20

// text returns random characters for a password.
func (random) text(length int, chars string, lower, upper, digits, punctuation, whitespace, printable bool) (string,
	error) {
	if length > longestText {
		return "", fmt.Errorf("%d characters are more than the limit of %d", length, longestText)
	}
	from := charset(chars, lower, upper, digits, punctuation, whitespace, printable)
	if from == "" && length > 0 {
		return "", diag.Call.Hint(errors.New("there are no characters to draw from"),
			"allow one kind of characters, or name them with chars")
	}
	return secret(from, max(length, 0))
}

func charset(chars string, lower, upper, digits, punctuation, whitespace, printable bool) string {
	const (
		small = "abcdefghijklmnopqrstuvwxyz"
		marks = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
		blank = " \t\n\r\x0b\x0c"
		ten   = "0123456789"
	)
	large := strings.ToUpper(small)
	if printable {
		return ten + small + large + marks + blank
	}
	if chars != "" {
		return chars
	}
	for _, kind := range []struct {
		wanted bool
		chars  string
	}{{lower, small}, {upper, large}, {digits, ten}, {punctuation, marks}, {whitespace, blank}} {
		if kind.wanted {
			chars += kind.chars
		}
	}
	return chars
}

// secret returns n characters of from, chosen by the system's source of randomness.
func secret(from string, n int) (string, error) {
	chars := []rune(from)
	var b strings.Builder
	for range n {
		i, err := rand.Int(rand.Reader, big.NewInt(int64(len(chars))))
		if err != nil {
			return "", err
		}
		b.WriteRune(chars[i.Int64()])
	}
	return b.String(), nil
}

func encoded(text, form string) (string, error) {
	if form != "base64" {
		return "", fmt.Errorf("there is no encoder %q, only base64", form)
	}
	return base64.StdEncoding.EncodeToString([]byte(text)), nil
}
