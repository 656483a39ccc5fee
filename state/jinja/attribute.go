package jinja

import (
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// getter looks an attribute up in an item, as in map(attribute="address.city").
type getter func(item any) (any, error)

// attribute returns a getter for a path. Dots separate names, and digits are indexes. Without an attribute, the getter
// returns the item itself. Fallback replaces an undefined result, unless it is nil.
func (c *Call) attribute(attr, fallback any, ignoreCase bool) getter {
	parts := attributeParts(attr)
	return func(item any) (any, error) {
		var err error
		for _, part := range parts {
			if item, err = c.f.getitem(item, part); err != nil {
				return nil, err
			}
			if fallback != nil && isUndefined(item) {
				item = fallback
			}
		}
		if ignoreCase {
			item = withoutCase(item)
		}
		return item, nil
	}
}

func attributeParts(attr any) []any {
	name, ok := attr.(string)
	if !ok {
		if attr == nil {
			return nil
		}
		return []any{attr}
	}
	var parts []any
	for part := range strings.SplitSeq(name, ".") {
		if n, err := strconv.Atoi(part); err == nil && part[0] != '-' && part[0] != '+' {
			parts = append(parts, n)
		} else {
			parts = append(parts, part)
		}
	}
	return parts
}

func withoutCase(v any) any {
	if s, ok := v.(string); ok {
		return value.Lower(s)
	}
	return v
}

// caseIgnored returns the opposite of the argument case_sensitive.
func (c *Call) caseIgnored(i int) (bool, error) { return not(c.Bool(i)) }
