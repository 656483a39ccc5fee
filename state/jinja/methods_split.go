package jinja

import (
	"strings"
	"unicode/utf8"

	"github.com/corpus-agent/corpus-agent/state/value"
)

func countText(c *Call, s string) (any, error) {
	sub, err := c.Text(0)
	if err != nil {
		return nil, err
	}
	part, _, ok, err := window(c, s, 1)
	if err != nil || !ok {
		return 0, err
	}
	return strings.Count(part, sub), nil
}

func findMethodOf(index func(s, sub string) int, fails bool) *method {
	return stringMethod(func(c *Call, s string) (any, error) {
		sub, err := c.Text(0)
		if err != nil {
			return nil, err
		}
		part, offset, ok, err := window(c, s, 1)
		if err != nil {
			return nil, err
		}
		if at := index(part, sub); ok && at >= 0 {
			return offset + utf8.RuneCountInString(part[:at]), nil
		}
		if fails {
			return nil, value.Raise("ValueError", "substring not found")
		}
		return -1, nil
	}, Arg("sub"), Opt("start", nil), Opt("end", nil))
}

func affixMethod(has func(s, affix string) bool) *method {
	return stringMethod(func(c *Call, s string) (any, error) {
		part, _, ok, err := window(c, s, 1)
		if err != nil {
			return nil, err
		}
		affixes, isTuple := c.Args[0].(value.Tuple)
		if !isTuple {
			affix, err := c.Text(0)
			return ok && has(part, affix), err
		}
		for _, a := range affixes {
			affix, isText := a.(string)
			if !isText {
				return nil, typeError("tuple for startswith must only contain str, not " + value.TypeName(a))
			}
			if ok && has(part, affix) {
				return true, nil
			}
		}
		return false, nil
	}, Arg("affix"), Opt("start", nil), Opt("end", nil))
}

// separator returns the argument sep, and the limit of splits after it.
func separator(c *Call) (sep string, given bool, limit int, err error) {
	if limit, err = c.Int(1); err != nil || c.Args[0] == nil {
		return "", false, limit, err
	}
	if sep, err = c.Text(0); err == nil && sep == "" {
		err = value.Raise("ValueError", "empty separator")
	}
	return sep, true, limit, err
}

func splitText(c *Call, s string) (any, error) {
	sep, given, limit, err := separator(c)
	switch {
	case err != nil:
		return nil, err
	case !given:
		return value.Strings(value.Fields(s, limit)...), nil
	case limit < 0:
		return value.Strings(strings.Split(s, sep)...), nil
	}
	return value.Strings(strings.SplitN(s, sep, limit+1)...), nil
}

func rsplitText(c *Call, s string) (any, error) {
	sep, given, limit, err := separator(c)
	switch {
	case err != nil:
		return nil, err
	case !given:
		return value.Strings(value.FieldsRight(s, limit)...), nil
	}
	return value.Strings(value.SplitRight(s, sep, limit)...), nil
}

func splitLines(c *Call, s string) (any, error) {
	keep, err := c.Bool(0)
	return value.Strings(value.SplitLines(s, keep)...), err
}

func partitionText(c *Call, s string) (any, error) {
	sep, err := nonEmptySeparator(c)
	if before, after, found := strings.Cut(s, sep); found {
		return value.Tuple{before, sep, after}, err
	}
	return value.Tuple{s, "", ""}, err
}

func rpartitionText(c *Call, s string) (any, error) {
	sep, err := nonEmptySeparator(c)
	if at := strings.LastIndex(s, sep); at >= 0 {
		return value.Tuple{s[:at], sep, s[at+len(sep):]}, err
	}
	return value.Tuple{"", "", s}, err
}

func nonEmptySeparator(c *Call) (string, error) {
	sep, err := c.Text(0)
	if err == nil && sep == "" {
		err = value.Raise("ValueError", "empty separator")
	}
	return sep, err
}

func joinText(c *Call, s string) (any, error) {
	items, err := c.Items(0)
	if err != nil {
		return nil, err
	}
	texts := make([]string, len(items))
	for i, item := range items {
		text, ok := item.(string)
		if err := refused(item); err != nil {
			return nil, typeError("sequence item " + itoa(i) + ": expected str instance, StrictUndefined found")
		}
		if !ok {
			return nil, typeError("sequence item " + itoa(i) + ": expected str instance, " + value.TypeName(item) + " found")
		}
		texts[i] = text
	}
	return c.joined(texts, s)
}

// joined joins texts unless that takes too much memory.
func (c *Call) joined(texts []string, sep string) (any, error) {
	size := len(sep) * max(0, len(texts)-1)
	for _, t := range texts {
		size += len(t)
	}
	if err := c.f.r.charge(size); err != nil {
		return nil, err
	}
	c.f.r.memory -= size // the caller counts the result again
	return strings.Join(texts, sep), nil
}
