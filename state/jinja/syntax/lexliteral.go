package syntax

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// name reads a name, which must be a Python identifier.
func (l *lexer) name() error {
	end := l.pos
	for i, r := range l.src[l.pos:] {
		if !isNameRune(r) {
			break
		}
		end = l.pos + i + utf8.RuneLen(r)
	}
	if end == l.pos {
		return l.unexpected()
	}
	text := l.src[l.pos:end]
	if first, _ := utf8.DecodeRuneInString(text); first != '_' && !unicode.IsLetter(first) &&
		!unicode.Is(unicode.Nl, first) {
		return fail(l.line, l.pos, "Invalid character in identifier")
	}
	l.tokens = append(l.tokens, token{kind: tokName, line: l.line, at: l.pos, text: text})
	l.pos = end
	return nil
}

func isNameRune(r rune) bool {
	if r < utf8.RuneSelf {
		return isNameByte(byte(r))
	}
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) ||
		unicode.In(r, unicode.M, unicode.Nl, unicode.Pc))
}

// number reads an integer or a float. Digits after the dot of an attribute are no float, as in a.1.2.
func (l *lexer) number() error {
	k, end := tokFloat, -1
	if l.pos == 0 || l.src[l.pos-1] != '.' {
		end = l.floatEnd(l.pos)
	}
	if end < 0 {
		k, end = tokInteger, l.integerEnd(l.pos)
	}
	text := strings.ReplaceAll(l.src[l.pos:end], "_", "")
	l.tokens = append(l.tokens, token{kind: k, line: l.line, at: l.pos, text: text})
	l.pos = end
	return nil
}

// digitsEnd finds the end of digits with single underscores between, or returns at.
func (l *lexer) digitsEnd(at int, digits string) int {
	end := at
	for {
		next := end
		if next > at && l.byteAt(next) == '_' {
			next++
		}
		c := l.byteAt(next)
		if c == 0 || strings.IndexByte(digits, c) < 0 {
			return end
		}
		end = next + 1
	}
}

const decimalDigits = "0123456789"

func (l *lexer) floatEnd(at int) int {
	end := l.digitsEnd(at, decimalDigits)
	float := false
	if l.byteAt(end) == '.' {
		if fraction := l.digitsEnd(end+1, decimalDigits); fraction > end+1 {
			end, float = fraction, true
		}
	}
	if c := l.byteAt(end); c == 'e' || c == 'E' {
		start := end + 1
		if sign := l.byteAt(start); sign == '+' || sign == '-' {
			start++
		}
		if exponent := l.digitsEnd(start, decimalDigits); exponent > start {
			return exponent
		}
	}
	if float {
		return end
	}
	return -1
}

func (l *lexer) integerEnd(at int) int {
	if l.src[at] != '0' {
		return l.digitsEnd(at, decimalDigits)
	}
	digits := map[byte]string{'b': "01", 'o': "01234567", 'x': "0123456789abcdefABCDEF"}[l.byteAt(at+1)|0x20]
	if digits != "" {
		start := at + 2
		if l.byteAt(start) == '_' {
			start++
		}
		if end := l.digitsEnd(start, digits); end > start {
			return end
		}
	}
	return l.digitsEnd(at, "0")
}

// quoted reads a string.
func (l *lexer) quoted(quote byte) error {
	end := l.pos + 1
	escapes := false
	for {
		c := l.byteAt(end)
		if end >= len(l.src) {
			return l.unexpected()
		}
		if c == quote {
			break
		}
		if c == '\\' {
			escapes = true
			end++
		}
		end++
	}
	text := l.src[l.pos+1 : end]
	if escapes {
		var err error
		if text, err = unescape(text); err != nil {
			return fail(l.line, l.pos, "%s", err).withHint(`write a backslash as \\`)
		}
	}
	l.tokens = append(l.tokens, token{kind: tokString, line: l.line, at: l.pos, text: text})
	l.advance(end + 1)
	return nil
}

// unescape replaces escape sequences as Python's unicode-escape does. Unknown ones stay unchanged.
func unescape(text string) (string, error) {
	var b strings.Builder
	for text != "" {
		plain, rest, found := strings.Cut(text, `\`)
		b.WriteString(plain)
		if !found {
			break
		}
		size, err := unescapeOne(&b, rest)
		if err != nil {
			return "", err
		}
		text = rest[size:]
	}
	return b.String(), nil
}

// unescapeOne writes the character of an escape sequence, a backslash and the start of s, and returns the number of
// bytes of s that it used.
func unescapeOne(b *strings.Builder, s string) (int, error) {
	if s == "" {
		b.WriteByte('\\')
		return 0, nil
	}
	const letters, meaning = "abfnrtv\\'\"", "\a\b\f\n\r\t\v\\'\""
	c := s[0]
	if i := strings.IndexByte(letters, c); i >= 0 {
		b.WriteByte(meaning[i])
		return 1, nil
	}
	switch {
	case c == '\n':
		return 1, nil
	case c >= '0' && c <= '7':
		return unescapeOctal(b, s), nil
	case c == 'x' || c == 'u' || c == 'U':
		return unescapeHex(b, s)
	case c == 'N':
		return 0, fail(0, 0, `\N{name} is not supported: write \u and the number of the character`)
	case c >= utf8.RuneSelf:
		r, size := utf8.DecodeRuneInString(s)
		b.WriteString(doubleEscape(r))
		return size, nil
	}
	b.WriteByte('\\')
	b.WriteByte(c)
	return 1, nil
}

// doubleEscape returns the result of a backslash before a character that is not ASCII: Python converts the character to
// an escape sequence first, so the backslash escapes the one of that sequence.
func doubleEscape(r rune) string {
	switch {
	case r <= 0xff:
		return `\x` + strconv.FormatInt(int64(r)+0x100, 16)[1:]
	case r <= 0xffff:
		return `\u` + strconv.FormatInt(int64(r)+0x10000, 16)[1:]
	}
	return `\U` + strconv.FormatInt(int64(r)+0x100000000, 16)[1:]
}

func unescapeOctal(b *strings.Builder, s string) int {
	size := 1
	for size < min(3, len(s)) && s[size] >= '0' && s[size] <= '7' {
		size++
	}
	n, _ := strconv.ParseUint(s[:size], 8, 32)
	b.WriteRune(rune(n))
	return size
}

func unescapeHex(b *strings.Builder, s string) (int, error) {
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[0]]
	end := min(1+digits, len(s))
	n, err := strconv.ParseUint(s[1:end], 16, 32)
	if err != nil || end != 1+digits {
		return 0, fail(0, 0, `truncated \%s escape`, s[:1]+strings.Repeat("X", digits))
	}
	if n > utf8.MaxRune {
		return 0, fail(0, 0, "illegal Unicode character")
	}
	b.WriteRune(rune(n))
	return end, nil
}
