package value

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsSpace reports whether str.isspace and str.strip treat a character as white space.
func IsSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

// Strip removes white space at both ends, as str.strip() does.
func Strip(s string) string { return strings.TrimFunc(s, IsSpace) }

// StripLeft implements str.lstrip().
func StripLeft(s string) string { return strings.TrimLeftFunc(s, IsSpace) }

// StripRight implements str.rstrip().
func StripRight(s string) string { return strings.TrimRightFunc(s, IsSpace) }

// Fields implements str.split() without a separator, with at most limit splits; a negative limit means no limit.
func Fields(s string, limit int) []string {
	if limit < 0 {
		return strings.FieldsFunc(s, IsSpace)
	}
	var fields []string
	for s = StripLeft(s); s != ""; s = StripLeft(s) {
		end := strings.IndexFunc(s, IsSpace)
		if len(fields) == limit || end < 0 {
			return append(fields, trimLast(s, len(fields) == limit))
		}
		fields = append(fields, s[:end])
		s = s[end:]
	}
	return fields
}

func trimLast(s string, cut bool) string {
	if cut {
		return StripRight(s)
	}
	return s
}

// FieldsRight implements str.rsplit() without a separator, which splits from the end.
func FieldsRight(s string, limit int) []string {
	if limit < 0 {
		return Fields(s, limit)
	}
	var fields []string
	for s = StripRight(s); s != ""; s = StripRight(s) {
		start := strings.LastIndexFunc(s, IsSpace)
		if len(fields) == limit || start < 0 {
			if len(fields) == limit {
				s = StripLeft(s)
			}
			fields = append(fields, s)
			break
		}
		_, size := utf8.DecodeRuneInString(s[start:])
		fields = append(fields, s[start+size:])
		s = s[:start]
	}
	slices.Reverse(fields)
	return fields
}

// SplitRight implements str.rsplit(sep, limit).
func SplitRight(s, sep string, limit int) []string {
	parts := strings.Split(s, sep)
	if limit < 0 || len(parts) <= limit+1 {
		return parts
	}
	head := len(parts) - limit
	return append([]string{strings.Join(parts[:head], sep)}, parts[head:]...)
}

// SplitLines implements str.splitlines(), which splits at every line break that Unicode knows.
func SplitLines(s string, keepEnds bool) []string {
	var lines []string
	for s != "" {
		end, size := lineBreak(s)
		if end < 0 {
			return append(lines, s)
		}
		line := s[:end]
		if keepEnds {
			line = s[:end+size]
		}
		lines = append(lines, line)
		s = s[end+size:]
	}
	return lines
}

// lineBreak returns the offset of the first line break, or -1, and its length in bytes.
func lineBreak(s string) (at, size int) {
	at = strings.IndexAny(s, "\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029")
	if at < 0 {
		return -1, 0
	}
	if strings.HasPrefix(s[at:], "\r\n") {
		return at, 2
	}
	_, size = utf8.DecodeRuneInString(s[at:])
	return at, size
}

// Upper implements str.upper(). Unlike Go, Python maps the sharp s to two letters.
func Upper(s string) string { return strings.ReplaceAll(strings.ToUpper(s), "ß", "SS") }

// Lower implements str.lower().
func Lower(s string) string { return strings.ToLower(s) }

// Capitalize implements str.capitalize(): the first letter in title case, the others in lower case.
func Capitalize(s string) string {
	r, size := utf8.DecodeRuneInString(s)
	if size == 0 {
		return s
	}
	if r == 'ß' {
		return "Ss" + Lower(s[size:])
	}
	return string(unicode.ToTitle(r)) + Lower(s[size:])
}

// Title implements str.title(): every letter that follows no letter in title case, the others in lower case.
func Title(s string) string {
	inWord := false
	return strings.Map(func(r rune) rune {
		follows := inWord
		inWord = isCased(r)
		switch {
		case !inWord:
			return r
		case follows:
			return unicode.ToLower(r)
		}
		return unicode.ToTitle(r)
	}, s)
}

func isCased(r rune) bool {
	return unicode.IsUpper(r) || unicode.IsLower(r) || unicode.IsTitle(r)
}

// SwapCase implements str.swapcase().
func SwapCase(s string) string {
	return strings.ReplaceAll(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsUpper(r):
			return unicode.ToLower(r)
		case unicode.IsLower(r):
			return unicode.ToUpper(r)
		}
		return r
	}, s), "ß", "SS")
}

// Pad widens s to width characters with fill. Align is '<' to pad on the right, '>' on the left and '^' on both sides,
// with one more on the right if their number is odd.
func Pad(s string, width int, fill rune, align byte) (string, error) {
	missing := width - utf8.RuneCountInString(s)
	if missing <= 0 {
		return s, nil
	}
	if err := checkText(len(s) + missing*utf8.RuneLen(fill)); err != nil {
		return "", err
	}
	left := 0
	switch align {
	case '>':
		left = missing
	case '^':
		left = missing / 2
	}
	f := string(fill)
	return strings.Repeat(f, left) + s + strings.Repeat(f, missing-left), nil
}

// Center implements str.center: if the number of added characters is odd, the extra one is on the right for an even
// width, and on the left for an odd one.
func Center(s string, width int, fill rune) (string, error) {
	missing := width - utf8.RuneCountInString(s)
	if missing > 0 && missing%2 == 1 && width%2 == 1 {
		if err := checkText(len(s) + missing*utf8.RuneLen(fill)); err != nil {
			return "", err
		}
		s = string(fill) + s
	}
	return Pad(s, width, fill, '^')
}

// ZeroFill implements str.zfill: it puts zeros between the sign and the digits.
func ZeroFill(s string, width int) (string, error) {
	sign := ""
	if s != "" && (s[0] == '-' || s[0] == '+') {
		sign, s = s[:1], s[1:]
	}
	padded, err := Pad(s, width-len(sign), '0', '>')
	return sign + padded, err
}

// ExpandTabs implements str.expandtabs.
func ExpandTabs(s string, size int) (string, error) {
	var b strings.Builder
	column := 0
	for _, r := range s {
		switch {
		case r == '\t':
			n := 0
			if size > 0 {
				n = size - column%size
			}
			if err := checkText(b.Len() + n); err != nil {
				return "", err
			}
			b.WriteString(strings.Repeat(" ", n))
			column += n
			continue
		case r == '\n' || r == '\r':
			column = -1
		}
		b.WriteRune(r)
		column++
	}
	return b.String(), nil
}
