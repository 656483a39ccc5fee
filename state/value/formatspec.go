package value

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// formatSpec is a format in Python's mini-language: [[fill]align][sign][z][#][0][width][,][.precision][type].
type formatSpec struct {
	fill      rune // 0 is a space
	align     byte // one of < > = ^, or 0 for the default of the type
	sign      byte // one of + - space, or 0
	noNegZero bool
	alternate bool
	zero      bool
	width     int
	group     byte // one of , _ or 0
	precision int  // -1 for none
	verb      byte // 0 for none
}

// FormatValue implements Python's format(v, spec).
func FormatValue(v any, spec string) (string, error) {
	if spec == "" {
		return ToStr(v)
	}
	s, err := parseFormatSpec(spec, v)
	if err != nil {
		return "", err
	}
	switch v := v.(type) {
	case string:
		return s.formatString(v)
	case float64:
		return s.formatFloat(v)
	}
	if n, ok := asBig(v); ok {
		return s.formatInt(n, TypeName(v))
	}
	return "", typeError("unsupported format string passed to %s.__format__", TypeName(v))
}

func parseFormatSpec(text string, v any) (formatSpec, error) {
	s := formatSpec{precision: -1}
	rest := s.parseAlign(text)
	take := func(chars string) byte {
		if rest != "" && strings.IndexByte(chars, rest[0]) >= 0 {
			c := rest[0]
			rest = rest[1:]
			return c
		}
		return 0
	}
	s.sign = take("+- ")
	s.noNegZero = take("z") != 0
	s.alternate = take("#") != 0
	s.zero = take("0") != 0
	var err error
	if s.width, rest, err = leadingNumber(rest); err != nil {
		return s, err
	}
	s.group = take(",_")
	if take(".") != 0 {
		digits := rest
		if s.precision, rest, err = leadingNumber(rest); err != nil {
			return s, err
		}
		if rest == digits {
			return s, valueError("Format specifier missing precision")
		}
	}
	if len(rest) > 1 {
		return s, valueError("Invalid format specifier '%s' for object of type '%s'", text, TypeName(v))
	}
	if rest != "" {
		s.verb = rest[0]
	}
	return s, nil
}

func (s *formatSpec) parseAlign(text string) (rest string) {
	first, size := utf8.DecodeRuneInString(text)
	if len(text) > size && strings.IndexByte("<>=^", text[size]) >= 0 {
		s.fill, s.align = first, text[size]
		return text[size+1:]
	}
	if text != "" && strings.IndexByte("<>=^", text[0]) >= 0 {
		s.align = text[0]
		return text[1:]
	}
	return text
}

// leadingNumber reads the digits at the start of s. The number must not exceed the limit for the length of a text.
func leadingNumber(s string) (n int, rest string, err error) {
	end := 0
	for end < len(s) && s[end] >= '0' && s[end] <= '9' {
		end++
	}
	if end == 0 {
		return 0, s, nil
	}
	n, convErr := strconv.Atoi(s[:end])
	if convErr != nil {
		return 0, "", valueError("Too many decimal digits in format string")
	}
	return n, s[end:], checkText(n)
}

func (s *formatSpec) unknown(typeName string) error {
	return valueError("Unknown format code '%c' for object of type '%s'", s.verb, typeName)
}

func (s *formatSpec) formatString(v string) (string, error) {
	switch {
	case s.verb != 0 && s.verb != 's':
		return "", s.unknown("str")
	case s.sign != 0:
		return "", valueError("Sign not allowed in string format specifier")
	case s.alternate:
		return "", valueError("Alternate form (#) not allowed in string format specifier")
	case s.align == '=':
		return "", valueError("'=' alignment not allowed in string format specifier")
	case s.group != 0:
		return "", valueError("Cannot specify '%c' with 's'.", s.group)
	}
	if s.align == 0 {
		s.align = '<'
	}
	if s.zero && s.fill == 0 {
		s.fill = '0'
	}
	return s.text(v)
}

// text truncates the string to the precision and pads it to the width.
func (s *formatSpec) text(v string) (string, error) {
	if s.precision >= 0 && s.precision < len(v) {
		n, _ := Len(v)
		v = sliceString(v, n, Range{Step: 1, Count: min(s.precision, n)})
	}
	return Pad(v, s.width, s.fillRune(), s.align)
}

func (s *formatSpec) fillRune() rune {
	if s.fill == 0 {
		return ' '
	}
	return s.fill
}
