package redact

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Controls returns a text that is safe for a terminal: escape sequences and other control characters of programs'
// output are written as \x1b, bytes that are not UTF-8 likewise, and characters that reorder what is shown as \u202e.
// Line feeds and tabs stay; a carriage return before a line feed is dropped.
func Controls(text string) string {
	if strings.IndexFunc(text, unsafe) < 0 && utf8.ValidString(text) {
		return text
	}
	text = strings.ReplaceAll(text, "\r\n", "\n")
	var out strings.Builder
	for len(text) > 0 {
		c, size := utf8.DecodeRuneInString(text)
		switch {
		case c == utf8.RuneError && size == 1:
			fmt.Fprintf(&out, `\x%02x`, text[0])
		case !unsafe(c):
			out.WriteRune(c)
		case c < 0x100:
			fmt.Fprintf(&out, `\x%02x`, c)
		default:
			out.WriteString(unicodeEscape(c))
		}
		text = text[size:]
	}
	return out.String()
}

// unsafe reports whether a character is a control character, reorders text, or is a line end to some programs.
func unsafe(c rune) bool {
	switch c {
	case '\n', '\t':
		return false
	case '\u2028', '\u2029':
		return true
	}
	return unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c)
}

func unicodeEscape(c rune) string { return fmt.Sprintf(`\u%04x`, c) }
