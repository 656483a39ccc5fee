package cloud

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Kind is what a field of a mapping may have besides None.
type Kind int

// The kinds of fields.
const (
	Anything Kind = iota
	Whole         // a whole number, also as text
	Flag          // a boolean
	Word          // a text or a number
)

// Fields describes the mappings inside an argument, such as a rule of a security group: the fields that they may have.
type Fields map[string]Kind

// Check returns an error if a value is not a mapping, or has a field that is not described or that has a value of
// another kind. what names the value in the error.
func (f Fields) Check(what string, v any) error {
	m := MapOf(v)
	if m == nil {
		return fmt.Errorf("%s is a %s, and a mapping was expected", what, value.TypeName(v))
	}
	for key, item := range m.All() {
		name := value.Str(key)
		kind, known := f[name]
		if !known {
			return diag.Amazon.Hint(fmt.Errorf("%s has no field %s", what, name), "%s",
				Meant(name, slices.Sorted(maps.Keys(f))))
		}
		if err := kind.check(item); err != nil {
			return fmt.Errorf("%s of %s: %w", name, what, err)
		}
	}
	return nil
}

// Meant returns a hint for a misspelt name: the known name nearest to it, or all known ones.
func Meant(name string, known []string) string {
	if hint := diag.DidYouMean(name, known); hint != "" {
		return hint
	}
	return "it may have " + strings.Join(known, ", ")
}

// OneOf returns an error unless a value, if there is one, is one of the known ones. what names it in the error.
func OneOf[T ~string](what, v string, known []T) error {
	var names []string
	for _, k := range known {
		names = append(names, string(k))
	}
	if v == "" || slices.Contains(names, v) {
		return nil
	}
	return diag.Amazon.Hint(fmt.Errorf("%s is %s, which AWS does not have", what, v), "%s", Meant(v, names))
}

func (k Kind) check(v any) error {
	switch k {
	case Whole:
		if v != nil && !whole(v) {
			return fmt.Errorf("%s is not a whole number", value.Repr(v))
		}
	case Flag:
		if _, is := v.(bool); v != nil && !is {
			return diag.Amazon.Hint(fmt.Errorf("%s is not a boolean", value.Repr(v)), "write true or false, without quotes")
		}
	case Word:
		switch v.(type) {
		case *value.Map, *value.List, bool:
			return fmt.Errorf("it is a %s, and a text was expected", value.TypeName(v))
		}
	}
	return nil
}

// whole reports whether a value is a whole number that AWS can have.
func whole(v any) bool {
	if f, is := v.(float64); is && f != math.Trunc(f) {
		return false
	}
	if _, is := v.(bool); is {
		return false
	}
	n, err := value.ToInt(v)
	i, is := n.(int)
	return err == nil && is && i >= math.MinInt32 && i <= math.MaxInt32
}

// Network returns a network as AWS stores it: the bits after its prefix are zero, and IPv6 addresses have their
// shortest form. 10.0.0.5/8 becomes 10.0.0.0/8, and 2001:DB8:0::/32 becomes 2001:db8::/32.
func Network(text string) (string, error) {
	text = strings.TrimSpace(text)
	if at, err := netip.ParseAddr(text); err == nil {
		return "", diag.Amazon.Hint(fmt.Errorf("%s is an address, and a network was expected", text), "write %s/%d", text,
			at.BitLen())
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		why := errors.New("it is not a network")
		if _, bits, found := strings.Cut(text, "/"); found {
			if _, err := netip.ParseAddr(strings.TrimSuffix(text, "/"+bits)); err == nil {
				why = fmt.Errorf("its prefix cannot have %s bits", bits)
			}
		}
		return "", diag.Amazon.Hint(fmt.Errorf("%s: %w", text, why),
			"write an address and the bits of its prefix: 10.0.0.0/8")
	}
	return p.Masked().String(), nil
}
