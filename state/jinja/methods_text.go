package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// textMethod returns a method of str that needs nothing but the string. It is not inlined, as [Define].
//
//go:noinline
func textMethod(fn func(s string) any) *method {
	return &method{call: func(_ *Call, self any) (any, error) { return fn(self.(string)), nil }}
}

// stringMethod returns a method of str with parameters. It is not inlined, as [Define].
//
//go:noinline
func stringMethod(fn func(c *Call, s string) (any, error), params ...Param) *method {
	return &method{params: params, call: func(c *Call, self any) (any, error) { return fn(c, self.(string)) }}
}

// allRunes returns a method that reports whether a string is not empty and is(r) is true for each of its characters. It
// is not inlined, as [Define].
//
//go:noinline
func allRunes(is func(rune) bool) *method {
	return textMethod(func(s string) any {
		return s != "" && strings.IndexFunc(s, func(r rune) bool { return !is(r) }) < 0
	})
}

func textMethods() map[string]*method {
	return map[string]*method{
		"capitalize": textMethod(func(s string) any { return value.Capitalize(s) }),
		"casefold":   textMethod(func(s string) any { return strings.ReplaceAll(value.Lower(s), "ß", "ss") }),
		"lower":      textMethod(func(s string) any { return value.Lower(s) }),
		"swapcase":   textMethod(func(s string) any { return value.SwapCase(s) }),
		"title":      textMethod(func(s string) any { return value.Title(s) }),
		"upper":      textMethod(func(s string) any { return value.Upper(s) }),

		"isalnum": allRunes(func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }),
		"isalpha": allRunes(unicode.IsLetter),
		"isascii": textMethod(func(s string) any {
			return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
		}),
		"isdecimal":    allRunes(unicode.IsDigit),
		"isdigit":      allRunes(isDigitRune),
		"isnumeric":    allRunes(unicode.IsNumber),
		"isspace":      allRunes(value.IsSpace),
		"isprintable":  textMethod(func(s string) any { return strings.IndexFunc(s, notPrintable) < 0 }),
		"isidentifier": textMethod(func(s string) any { return isIdentifier(s) }),
		"islower":      textMethod(func(s string) any { return isCase(s, unicode.IsLower, unicode.IsUpper) }),
		"isupper":      textMethod(func(s string) any { return isCase(s, unicode.IsUpper, unicode.IsLower) }),
		"istitle":      textMethod(func(s string) any { return value.Title(s) == s && s != value.SwapCase(s) }),

		"center":     padMethod(value.Center),
		"ljust":      padMethod(func(s string, w int, f rune) (string, error) { return value.Pad(s, w, f, '<') }),
		"rjust":      padMethod(func(s string, w int, f rune) (string, error) { return value.Pad(s, w, f, '>') }),
		"zfill":      stringMethod(zfill, Arg("width")),
		"expandtabs": stringMethod(expandTabs, Opt("tabsize", 8)),

		"strip":        stripMethod(strings.Trim, value.Strip),
		"lstrip":       stripMethod(strings.TrimLeft, value.StripLeft),
		"rstrip":       stripMethod(strings.TrimRight, value.StripRight),
		"removeprefix": cutMethod(strings.TrimPrefix),
		"removesuffix": cutMethod(strings.TrimSuffix),

		"count":      stringMethod(countText, Arg("sub"), Opt("start", nil), Opt("end", nil)),
		"find":       findMethodOf(strings.Index, false),
		"index":      findMethodOf(strings.Index, true),
		"rfind":      findMethodOf(strings.LastIndex, false),
		"rindex":     findMethodOf(strings.LastIndex, true),
		"startswith": affixMethod(strings.HasPrefix),
		"endswith":   affixMethod(strings.HasSuffix),

		"split":      stringMethod(splitText, Opt("sep", nil), Opt("maxsplit", -1)),
		"rsplit":     stringMethod(rsplitText, Opt("sep", nil), Opt("maxsplit", -1)),
		"splitlines": stringMethod(splitLines, Opt("keepends", false)),
		"partition":  stringMethod(partitionText, Arg("sep")),
		"rpartition": stringMethod(rpartitionText, Arg("sep")),
		"join":       stringMethod(joinText, Arg("iterable")),
		"replace":    stringMethod(replaceText, Arg("old"), Arg("new"), Opt("count", -1)),
		"translate":  stringMethod(translateText, Arg("table")),
		"encode":     stringMethod(encodeText, Opt("encoding", "utf-8"), Opt("errors", "strict")),
		"format":     {raw: true, call: formatText},
		"format_map": stringMethod(formatMap, Arg("mapping")),
	}
}

func isDigitRune(r rune) bool {
	return unicode.IsDigit(r) || r == '²' || r == '³' || r == '¹' || r >= 0x2070 && r <= 0x2089 ||
		r >= 0x2460 && r <= 0x2468
}

func notPrintable(r rune) bool {
	return r != ' ' && !unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S)
}

func isIdentifier(s string) bool {
	for i, r := range s {
		if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r) &&
			!unicode.In(r, unicode.M, unicode.Nl, unicode.Pc)) {
			return false
		}
	}
	return s != ""
}

// isCase reports whether a string has letters of one case, and none of the other.
func isCase(s string, is, other func(rune) bool) bool {
	return strings.IndexFunc(s, is) >= 0 && strings.IndexFunc(s, func(r rune) bool {
		return other(r) || unicode.IsTitle(r)
	}) < 0
}

func padMethod(pad func(s string, width int, fill rune) (string, error)) *method {
	return stringMethod(func(c *Call, s string) (any, error) {
		width, err := c.Int(0)
		if err != nil {
			return nil, err
		}
		fill, err := c.Text(1)
		if err != nil {
			return nil, err
		}
		if utf8.RuneCountInString(fill) != 1 {
			return nil, typeError("The fill character must be exactly one character long")
		}
		r, _ := utf8.DecodeRuneInString(fill)
		return wrap(pad(s, width, r))
	}, Arg("width"), Opt("fillchar", " "))
}

// wrap converts a string to any.
func wrap(s string, err error) (any, error) { return s, err }

func zfill(c *Call, s string) (any, error) {
	width, err := c.Int(0)
	if err != nil {
		return nil, err
	}
	return wrap(value.ZeroFill(s, width))
}

func expandTabs(c *Call, s string) (any, error) {
	size, err := c.Int(0)
	if err != nil {
		return nil, err
	}
	return wrap(value.ExpandTabs(s, size))
}

func stripMethod(trim func(s, cutset string) string, space func(string) string) *method {
	return stringMethod(func(c *Call, s string) (any, error) {
		if c.Args[0] == nil {
			return space(s), nil
		}
		chars, err := c.Text(0)
		return trim(s, chars), err
	}, Opt("chars", nil))
}

func cutMethod(cut func(s, affix string) string) *method {
	return stringMethod(func(c *Call, s string) (any, error) {
		affix, err := c.Text(0)
		return cut(s, affix), err
	}, Arg("affix"))
}

// window returns the part of s between start and end, which are arguments from and from+1, and its offset in
// characters.
func window(c *Call, s string, from int) (part string, offset int, ok bool, err error) {
	n := utf8.RuneCountInString(s)
	r, err := value.Bounds(c.Args[from], c.Args[from+1], nil, n)
	if err != nil {
		return "", 0, false, err
	}
	if start, isInt := c.Args[from].(int); isInt && start > n {
		return "", 0, false, nil
	}
	v, err := value.Slice(s, c.Args[from], c.Args[from+1], nil)
	if err != nil {
		return "", 0, false, err
	}
	return v.(string), r.Start, true, nil
}

func replaceText(c *Call, s string) (any, error) {
	old, err := c.Text(0)
	if err != nil {
		return nil, err
	}
	with, err := c.Text(1)
	if err != nil {
		return nil, err
	}
	count, err := c.Int(2)
	if err != nil {
		return nil, err
	}
	return c.replaced(s, old, with, count)
}

func (c *Call) replaced(s, old, with string, count int) (any, error) {
	times := strings.Count(s, old)
	if count >= 0 {
		times = min(times, count)
	}
	if grown := times * (len(with) - len(old)); grown > 0 {
		if err := c.f.r.charge(grown); err != nil {
			return nil, err
		}
		c.f.r.memory -= grown // the result will be counted again
	}
	return strings.Replace(s, old, with, count), nil
}

func translateText(c *Call, s string) (any, error) {
	table, ok := c.Args[0].(*value.Map)
	if !ok {
		return nil, typeError("expected a dict, not " + value.TypeName(c.Args[0]))
	}
	var b strings.Builder
	for _, r := range s {
		v, found, _ := table.GetKey(int(r))
		switch to := v.(type) {
		case string:
			b.WriteString(to)
		case int:
			b.WriteRune(rune(to))
		default:
			if !found {
				b.WriteRune(r)
			}
		}
	}
	return b.String(), nil
}

func encodeText(c *Call, s string) (any, error) {
	encoding, err := c.Text(0)
	if err != nil {
		return nil, err
	}
	switch strings.ReplaceAll(strings.ToLower(encoding), "_", "-") {
	case "utf-8", "utf8":
		return []byte(s), nil
	case "ascii", "us-ascii":
		for i, r := range s {
			if r >= utf8.RuneSelf {
				return nil, value.Raise("UnicodeEncodeError",
					"'ascii' codec can't encode character in position %d: ordinal not in range(128)", i)
			}
		}
		return []byte(s), nil
	}
	return nil, value.Raise("LookupError", "unknown encoding: %s", encoding)
}

func formatText(c *Call, self any) (any, error) {
	return c.format(self.(string), c.Args, c.Kwargs)
}

func formatMap(c *Call, s string) (any, error) {
	m, ok := c.Args[0].(*value.Map)
	if !ok {
		return nil, typeError("format_map() wants a dict, not " + value.TypeName(c.Args[0]))
	}
	return c.format(s, nil, m)
}

// format formats a string whose fields access attributes and items as templates do.
func (c *Call) format(s string, args []any, kwargs *value.Map) (any, error) {
	return wrap(value.Format(s, value.FormatArgs{
		Args: args, Kwargs: kwargs,
		Attr: func(v any, name string) (any, error) { return c.f.getattr(v, name) },
		Item: func(v any, key any) (any, error) { return c.f.getitem(v, key) },
	}))
}

func bytesMethods() map[string]*method {
	return map[string]*method{
		"decode": {params: []Param{Opt("encoding", "utf-8"), Opt("errors", "strict")},
			call: func(_ *Call, self any) (any, error) {
				b := self.([]byte)
				if !utf8.Valid(b) {
					return nil, value.Raise("UnicodeDecodeError", "'utf-8' codec can't decode the bytes")
				}
				return string(b), nil
			}},
	}
}
