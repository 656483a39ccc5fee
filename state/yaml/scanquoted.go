package yaml

import (
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

func (s *scanner) fetchQuoted(quote byte) error {
	if err := s.saveKey(); err != nil {
		return err
	}
	s.keyAllowed = false
	start := s.pos
	text, err := s.scanQuoted(quote)
	if err != nil {
		return err
	}
	st := singleQuoted
	if quote == '"' {
		st = doubleQuoted
	}
	s.push(token{kind: scalarText, style: st, at: start, text: text})
	return nil
}

func (s *scanner) scanQuoted(quote byte) (string, error) {
	start := s.pos
	s.pos++
	if text, ok := s.scanQuotedQuickly(quote); ok {
		return text, nil
	}
	var b strings.Builder
	for {
		if s.documentMark() {
			return "", s.unclosed(start, quote, "found unexpected document indicator in a quoted value")
		}
		if s.pos >= len(s.src) {
			return "", s.unclosed(start, quote, "found unexpected end of stream in a quoted value")
		}
		escapedBreak, closed, err := s.scanQuotedWord(&b, quote)
		if err != nil || closed {
			return b.String(), err
		}
		s.foldQuoted(&b, escapedBreak)
	}
}

// scanQuotedQuickly reads a value on one line without escape sequences.
func (s *scanner) scanQuotedQuickly(quote byte) (string, bool) {
	for i := s.pos; i < len(s.src); i++ {
		switch c := s.src[i]; {
		case c == quote:
			if quote == '\'' && s.byteAt(i+1) == quote {
				return "", false
			}
			text := s.src[s.pos:i]
			s.pos = i + 1
			return text, true
		case c == '\n' || c == '\r' || c == '\\' && quote == '"' || c >= 0x80 && s.breakAt(i) > 0:
			return "", false
		}
	}
	return "", false
}

func (s *scanner) unclosed(start int, quote byte, message string) error {
	return &problem{
		at: start, message: message, resume: start,
		hint: "close it with " + string(rune(quote)) + " on the line where it belongs",
	}
}

// scanQuotedWord copies until a blank or the closing quote.
func (s *scanner) scanQuotedWord(b *strings.Builder, quote byte) (escapedBreak, closed bool, err error) {
	for !s.blankAt(s.pos) {
		c := s.src[s.pos]
		switch {
		case c == quote && quote == '\'' && s.byteAt(s.pos+1) == quote:
			b.WriteByte(quote)
			s.pos += 2
		case c == quote:
			s.pos++
			return false, true, nil
		case c == '\\' && quote == '"' && s.breakAt(s.pos+1) > 0:
			s.pos++
			return true, false, nil
		case c == '\\' && quote == '"':
			if err := s.unescape(b); err != nil {
				return false, false, err
			}
		default:
			b.WriteByte(c)
			s.pos++
		}
	}
	return false, false, nil
}

// foldQuoted copies blanks, and folds line breaks with the blanks around them.
func (s *scanner) foldQuoted(b *strings.Builder, escapedBreak bool) {
	if escapedBreak {
		s.newLine()
		s.foldBreaks(b)
		return
	}
	start := s.pos
	for s.byteAt(s.pos) == ' ' || s.byteAt(s.pos) == '\t' {
		s.pos++
	}
	if s.breakAt(s.pos) == 0 {
		b.WriteString(s.src[start:s.pos])
		return
	}
	first := s.newLine()
	length := b.Len()
	if first != "\n" {
		b.WriteString(first)
	}
	s.foldBreaks(b)
	if b.Len() == length {
		b.WriteByte(' ')
	}
}

// foldBreaks skips blanks and copies the breaks of empty lines.
func (s *scanner) foldBreaks(b *strings.Builder) {
	for {
		switch c := s.byteAt(s.pos); {
		case s.documentMark():
			return
		case c == ' ' || c == '\t':
			s.pos++
		case s.breakAt(s.pos) > 0:
			b.WriteString(s.newLine())
		default:
			return
		}
	}
}

// escapes maps the letters that may follow a backslash to their values.
var escapes = sync.OnceValue(func() map[byte]string {
	return map[byte]string{
		'0': "\x00", 'a': "\a", 'b': "\b", 't': "\t", '\t': "\t", 'n': "\n", 'v': "\v", 'f': "\f",
		'r': "\r", 'e': "\x1b", ' ': " ", '"': `"`, '/': "/", '\\': `\`,
		'N': "\u0085", '_': "\u00a0", 'L': "\u2028", 'P': "\u2029",
	}
})

func (s *scanner) unescape(b *strings.Builder) error {
	c := s.byteAt(s.pos + 1)
	if text, ok := escapes()[c]; ok {
		b.WriteString(text)
		s.pos += 2
		return nil
	}
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
	if digits == 0 {
		return &problem{
			at: s.pos, message: "found unknown escape character", resume: s.pos,
			hint: `write a backslash as \\ inside double quotes, or use single quotes`,
		}
	}
	start := s.pos + 2
	n, err := strconv.ParseUint(s.src[start:min(start+digits, len(s.src))], 16, 64)
	if err != nil || start+digits > len(s.src) {
		return &problem{
			at: s.pos, resume: s.pos,
			message: "expected " + strconv.Itoa(digits) + ` hexadecimal digits after \` + string(rune(c)),
		}
	}
	if n > utf8.MaxRune || !utf8.ValidRune(rune(n)) {
		return &problem{at: s.pos, message: "found invalid Unicode character escape code", resume: s.pos}
	}
	b.WriteRune(rune(n))
	s.pos = start + digits
	return nil
}
