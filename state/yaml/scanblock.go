package yaml

import "strings"

// chomping says how the line breaks at the end of a block scalar are handled.
type chomping uint8

const (
	clip  chomping = iota // keep one
	strip                 // keep none
	keep                  // keep all
)

// fetchBlockScalar reads a value after | or >.
func (s *scanner) fetchBlockScalar() error {
	if err := s.dropKey(); err != nil {
		return err
	}
	s.keyAllowed = true
	start := s.pos
	st := literal
	if s.src[s.pos] == '>' {
		st = folded
	}
	s.pos++
	chomp, increment, err := s.blockHeader()
	if err != nil {
		return err
	}
	text, err := s.blockText(st, chomp, increment)
	if err != nil {
		return err
	}
	s.push(token{kind: scalarText, style: st, at: start, text: text})
	return nil
}

// blockHeader parses the indicators after | or > on the line: the chomping, and a digit for the indentation.
func (s *scanner) blockHeader() (chomp chomping, increment int, err error) {
	for range 2 {
		switch c := s.byteAt(s.pos); {
		case (c == '+' || c == '-') && chomp == clip:
			chomp = keep
			if c == '-' {
				chomp = strip
			}
			s.pos++
		case c == '0' && increment == 0:
			return 0, 0, &problem{at: s.pos, message: "expected an indentation indicator from 1 to 9, but found 0",
				resume: s.pos}
		case c >= '1' && c <= '9' && increment == 0:
			increment = int(c - '0')
			s.pos++
		}
	}
	for s.byteAt(s.pos) == ' ' || s.byteAt(s.pos) == '\t' {
		s.pos++
	}
	if s.byteAt(s.pos) == '#' {
		for s.pos < len(s.src) && s.breakAt(s.pos) == 0 {
			s.pos++
		}
	}
	if s.breakAt(s.pos) > 0 {
		s.newLine()
	} else if s.pos < len(s.src) {
		return 0, 0, &problem{
			at: s.pos, message: "did not find the end of the line after | or >", resume: s.pos,
			hint: "the text starts on the next line; put a value that starts with | or > in quotes",
		}
	}
	return chomp, increment, nil
}

func (s *scanner) blockText(st style, chomp chomping, increment int) (string, error) {
	indent := 0
	if increment > 0 {
		indent = max(s.indent, 0) + increment
	}
	breaks, indent, err := s.blockBreaks(indent)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	last := "" // the break of the previous line
	lastBlank := false
	for s.column() == indent && s.pos < len(s.src) {
		blank := s.byteAt(s.pos) == ' ' || s.byteAt(s.pos) == '\t'
		switch {
		case st == folded && last == "\n" && !lastBlank && !blank:
			if breaks == "" {
				b.WriteByte(' ')
			}
		default:
			b.WriteString(last)
		}
		b.WriteString(breaks)
		lastBlank = blank
		last = s.blockLine(&b)
		if breaks, _, err = s.blockBreaks(indent); err != nil {
			return "", err
		}
	}
	if chomp != strip {
		b.WriteString(last)
	}
	if chomp == keep {
		b.WriteString(breaks)
	}
	return b.String(), nil
}

// blockLine copies the rest of the line and returns its break.
func (s *scanner) blockLine(b *strings.Builder) string {
	start := s.pos
	for s.pos < len(s.src) && s.breakAt(s.pos) == 0 {
		s.pos++
	}
	b.WriteString(s.src[start:s.pos])
	if s.pos >= len(s.src) {
		return ""
	}
	return s.newLine()
}

// blockBreaks skips indentation and empty lines. An indentation of 0 is not known yet: the first line with text
// determines it.
func (s *scanner) blockBreaks(indent int) (breaks string, found int, err error) {
	deepest := 0
	for {
		for (indent == 0 || s.column() < indent) && s.byteAt(s.pos) == ' ' {
			s.pos++
		}
		deepest = max(deepest, s.column())
		if (indent == 0 || s.column() < indent) && s.byteAt(s.pos) == '\t' {
			return "", 0, &problem{
				at: s.pos, message: "found a tab character where an indentation space is expected", resume: s.pos,
				hint: "indent with spaces, never with tabs",
			}
		}
		if s.breakAt(s.pos) == 0 {
			break
		}
		breaks += s.newLine()
	}
	if indent == 0 {
		indent = max(deepest, s.indent+1, 1)
	}
	return breaks, indent, nil
}
