package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// onText returns a filter that applies a function on strings. Other values are converted to text first.
func onText(fn func(s string) string) func(c *Call) (any, error) {
	return func(c *Call) (any, error) {
		s, err := c.Str(0)
		return fn(s), err
	}
}

var (
	capitalizeFilter = onText(value.Capitalize)
	lowerFilter      = onText(value.Lower)
	upperFilter      = onText(value.Upper)
	stringFilter     = onText(func(s string) string { return s })
	titleFilter      = onText(title)
)

// title capitalizes letters only after white space and a few brackets, unlike Python's.
func title(s string) string {
	start := true
	var b strings.Builder
	for _, r := range s {
		switch {
		case value.IsSpace(r) || strings.ContainsRune("-({[<", r):
			b.WriteRune(r)
			start = true
			continue
		case start:
			b.WriteString(value.Upper(string(r)))
		default:
			b.WriteString(value.Lower(string(r)))
		}
		start = false
	}
	return b.String()
}

func centerFilter(c *Call) (any, error) {
	s, err := c.Str(0)
	if err != nil {
		return nil, err
	}
	width, err := c.Int(1)
	if err != nil {
		return nil, err
	}
	return wrap(value.Center(s, width, ' '))
}

func formatFilter(c *Call) (any, error) {
	if len(c.Args) > 1 && c.Kwargs.Len() > 0 {
		return nil, raise("FilterArgumentError", "can't handle positional and keyword arguments at the same time")
	}
	s, err := c.Str(0)
	if err != nil {
		return nil, err
	}
	if c.Kwargs.Len() > 0 {
		return wrap(value.Percent(s, c.Kwargs))
	}
	return wrap(value.Percent(s, value.Tuple(c.Args[1:])))
}

func indentFilter(c *Call) (any, error) {
	s, ok := c.Args[0].(string)
	if !ok {
		if err := refused(c.Args[0]); err != nil {
			return nil, err
		}
		if l, ok := c.Args[0].(*value.List); ok { // the line break becomes another item of a list
			l.Append("\n")
			return nil, noAttribute(l, "splitlines")
		}
		return nil, typeError("unsupported operand type(s) for +=: '" + value.TypeName(c.Args[0]) + "' and 'str'")
	}
	indent, ok := c.Args[1].(string)
	if !ok {
		width, err := c.Int(1)
		if err != nil {
			return nil, err
		}
		spaces, err := value.Mul(" ", width)
		if err != nil {
			return nil, err
		}
		indent = spaces.(string)
	}
	first, err := c.Bool(2)
	if err != nil {
		return nil, err
	}
	blank, err := c.Bool(3)
	if err != nil {
		return nil, err
	}
	return c.indented(value.SplitLines(s+"\n", false), indent, first, blank)
}

func (c *Call) indented(lines []string, indent string, first, blank bool) (any, error) {
	for i, line := range lines {
		if i == 0 && first || i > 0 && (blank || line != "") {
			lines[i] = indent + line
		}
		if err := c.f.r.charge(len(indent)); err != nil {
			return nil, err
		}
	}
	return c.joined(lines, "\n")
}

func replaceFilter(c *Call) (any, error) {
	var texts [3]string
	for i := range texts {
		var err error
		if texts[i], err = c.Str(i); err != nil {
			return nil, err
		}
	}
	count := -1
	if c.Args[3] != nil {
		var err error
		if count, err = c.Int(3); err != nil {
			return nil, err
		}
	}
	return c.replaced(texts[0], texts[1], texts[2], count)
}

func trimFilter(c *Call) (any, error) {
	s, err := c.Str(0)
	if err != nil || c.Args[1] == nil {
		return value.Strip(s), err
	}
	chars, err := c.Text(1)
	return strings.Trim(s, chars), err
}

func truncateFilter(c *Call) (any, error) {
	s, isText := c.Args[0].(string)
	size, err := lengthOf(c.Args[0])
	if err != nil {
		return nil, err
	}
	length, err := c.Int(1)
	if err != nil {
		return nil, err
	}
	end, err := c.Text(3)
	if err != nil {
		return nil, err
	}
	leeway := 5
	if c.Args[4] != nil {
		if leeway, err = c.Int(4); err != nil {
			return nil, err
		}
	}
	endLength := utf8.RuneCountInString(end)
	if length < endLength {
		return nil, raise("AssertionError", "expected length >= "+itoa(endLength)+", got "+itoa(length))
	}
	if leeway < 0 {
		return nil, raise("AssertionError", "expected leeway >= 0, got "+itoa(leeway))
	}
	if size <= length+leeway {
		return c.Args[0], nil
	}
	if !isText {
		return nil, typeError("expected a string, not " + value.TypeName(c.Args[0]))
	}
	runes := []rune(s)
	kill, err := c.Bool(2)
	if err != nil {
		return nil, err
	}
	cut := string(runes[:length-endLength])
	if at := strings.LastIndexByte(cut, ' '); !kill && at >= 0 {
		cut = cut[:at]
	}
	return cut + end, nil
}

func wordCountFilter(c *Call) (any, error) {
	s, err := c.Str(0)
	words := strings.FieldsFunc(s, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsNumber(r) })
	return len(words), err
}
