package value

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// EscapeRegexp implements Python's re.escape.
func EscapeRegexp(s string) string {
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune("()[]{}?*+-|^$\\.&~# \t\n\r\v\f", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// escape translates a backslash and the characters of its sequence.
func (t *regexpTranslator) escape(inClass bool) error {
	if len(t.rest) == 1 {
		return Raise("re.error", "bad escape (end of pattern)")
	}
	c := t.rest[1]
	switch {
	case strings.IndexByte("wWdDsS", c) >= 0:
		t.wary.unicode = true
		t.copy(2)
	case c == 'b' && inClass:
		t.replace(2, `\x08`)
	case !inClass && (c == 'b' || c == 'B'):
		t.wary.unicode = true
		t.copy(2)
	case !inClass && c == 'A':
		t.copy(2)
	case !inClass && c == 'Z':
		t.replace(2, `\z`)
	case strings.IndexByte("afnrtv", c) >= 0:
		t.copy(2)
	case c == 'x' || c == 'u' || c == 'U':
		return t.character(map[byte]int{'x': 2, 'u': 4, 'U': 8}[c])
	case c >= '0' && c <= '9':
		return t.number(inClass)
	case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		return Raise("re.error", `bad escape \%c`, c)
	default:
		r, size := utf8.DecodeRuneInString(t.rest[1:])
		t.replace(1+size, quoteRegexp(r))
	}
	return nil
}

func quoteRegexp(r rune) string {
	if r == '-' || r < 0x80 && !unicode.IsLetter(r) && !unicode.IsDigit(r) && r > ' ' && r != '_' {
		return `\` + string(r)
	}
	return string(r)
}

func (t *regexpTranslator) character(digits int) error {
	if len(t.rest) < 2+digits {
		return Raise("re.error", "incomplete escape %s", t.rest)
	}
	n, err := strconv.ParseUint(t.rest[2:2+digits], 16, 32)
	if err != nil || n > utf8.MaxRune {
		return Raise("re.error", "bad escape %s", t.rest[:2+digits])
	}
	t.replace(2+digits, quoteControl(rune(n)))
	return nil
}

func quoteControl(r rune) string {
	if r < ' ' || r == 0x7f {
		return `\x` + strconv.FormatInt(int64(r)+0x100, 16)[1:]
	}
	return quoteRegexp(r)
}

// number translates a back-reference or, with a leading zero, three digits or inside a class, a character.
func (t *regexpTranslator) number(inClass bool) error {
	end := 1
	for end < len(t.rest) && end < 4 && t.rest[end] >= '0' && t.rest[end] <= '7' {
		end++
	}
	if octal := t.rest[1:end]; octal != "" && (octal[0] == '0' || len(octal) == 3 || inClass) {
		n, _ := strconv.ParseUint(octal, 8, 32)
		t.replace(end, quoteControl(rune(n)))
		return nil
	}
	if inClass {
		return Raise("re.error", `bad escape \%c`, t.rest[1])
	}
	end = 2
	if len(t.rest) > 2 && t.rest[2] >= '0' && t.rest[2] <= '9' {
		end = 3
	}
	t.wary.always = true
	t.replace(end, `(?:\`+t.rest[1:end]+`)`)
	return nil
}
