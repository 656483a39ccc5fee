package yaml

import "strings"

// startsPlain reports whether c may start an unquoted value.
func (s *scanner) startsPlain(c byte, blankNext bool) bool {
	switch c {
	case ' ', '\t', ',', '[', ']', '{', '}', '#', '&', '*', '!', '|', '>', '\'', '"', '%', '@', '`':
		return false
	case '-':
		next := s.byteAt(s.pos + 1)
		return next != ' ' && next != '\t'
	case '?', ':':
		return s.flow == 0 && !blankNext
	}
	return true
}

func (s *scanner) fetchPlain() error {
	if err := s.saveKey(); err != nil {
		return err
	}
	s.keyAllowed = false
	start := s.pos
	text, err := s.scanPlain()
	if err != nil {
		return err
	}
	s.push(token{kind: scalarText, style: plain, at: start, text: text})
	return nil
}

// scanPlain reads an unquoted value, which may continue over lines that are indented deeper.
func (s *scanner) scanPlain() (string, error) {
	end, err := s.scanPlainLine()
	if err != nil {
		return "", err
	}
	text := s.src[s.pos:end]
	s.pos = end
	if s.plainEndsHere() {
		return text, nil
	}
	var b strings.Builder
	b.WriteString(text)
	return s.scanPlainRest(&b)
}

// plainEndsHere skips blanks on this line and reports whether the value ends here. It is the fast path for the usual
// case.
func (s *scanner) plainEndsHere() bool {
	i := s.pos
	for s.byteAt(i) == ' ' || s.byteAt(i) == '\t' {
		i++
	}
	n := s.breakAt(i)
	if n == 0 {
		c := s.byteAt(i)
		return i >= len(s.src) || i > s.pos && c == '#' || c == ':' || s.flow > 0 && isFlowIndicator(c)
	}
	next := i + n
	for s.byteAt(next) == ' ' {
		next++
	}
	if s.flow == 0 && next-(i+n) <= s.indent && s.byteAt(next) != '\t' && s.breakAt(next) == 0 {
		s.pos = i
		s.newLine()
		s.keyAllowed = true
		return true
	}
	return false
}

func isFlowIndicator(c byte) bool {
	return c == ',' || c == '[' || c == ']' || c == '{' || c == '}'
}

// scanPlainLine finds the end of the words on this line that belong to the value. A tab between two words is part of
// the value, as for libyaml, with which Salt reads YAML.
func (s *scanner) scanPlainLine() (int, error) {
	end := s.pos // after the last character that is not a blank
	for i := s.pos; ; {
		if s.byteAt(i) == '#' && i > s.pos {
			return end, nil
		}
		stop, err := s.plainWord(i)
		if err != nil {
			return 0, err
		}
		if stop == i {
			return end, nil
		}
		end = stop
		for i = stop; s.byteAt(i) == ' ' || s.byteAt(i) == '\t'; {
			i++
		}
		if i == stop {
			return end, nil
		}
	}
}

// plainWord finds the end of the word at i: a blank, a colon before a blank, or inside brackets a separator of items.
func (s *scanner) plainWord(i int) (int, error) {
	for ; ; i++ {
		switch c := s.byteAt(i); c {
		case ' ', '\t', '\n', '\r', 0:
			return i, nil
		case ':':
			if s.blankAt(i + 1) {
				return i, nil
			}
			if next := s.byteAt(i + 1); s.flow > 0 && (isFlowIndicator(next) || next == '?') {
				return 0, &problem{
					at: i, message: "found unexpected ':'", resume: s.pos,
					hint: "put a space after the colon, or the value in quotes",
				}
			}
		case ',', '[', ']', '{', '}':
			if s.flow > 0 {
				return i, nil
			}
		case 0xc2, 0xe2:
			if s.breakAt(i) > 0 {
				return i, nil
			}
		}
	}
}

// scanPlainRest reads the lines that follow. Single line breaks become spaces.
func (s *scanner) scanPlainRest(b *strings.Builder) (string, error) {
	for {
		fold, err := s.foldPlain()
		if err != nil {
			return "", err
		}
		if fold == "" || s.byteAt(s.pos) == '#' || s.documentMark() || s.flow == 0 && s.column() <= s.indent {
			return b.String(), nil
		}
		end, err := s.scanPlainLine()
		if err != nil {
			return "", err
		}
		if end == s.pos {
			return b.String(), nil
		}
		b.WriteString(fold)
		b.WriteString(s.src[s.pos:end])
		s.pos = end
	}
}

// foldPlain skips blanks and line breaks and returns their value between two words, or "" if there are none.
func (s *scanner) foldPlain() (string, error) {
	start, breaks := s.pos, ""
	var lines int
	for {
		c := s.byteAt(s.pos)
		switch {
		case c == '\t' && lines > 0 && s.column() <= s.indent:
			return "", &problem{
				at: s.pos, message: "found a tab character that violates indentation", resume: s.pos,
				hint: "indent with spaces, never with tabs",
			}
		case c == ' ' || c == '\t':
			s.pos++
		case s.breakAt(s.pos) > 0:
			if text := s.newLine(); lines > 0 || text != "\n" {
				breaks += text
			}
			lines++
			s.keyAllowed = true
		case lines == 0:
			return s.src[start:s.pos], nil
		case breaks == "":
			return " ", nil
		default:
			return breaks, nil
		}
	}
}
