package yaml

import (
	"net/url"
	"strings"
	"unicode/utf8"
)

// nameEnd finds the end of the letters, digits, dashes and underscores at i.
func (s *scanner) nameEnd(i int) int {
	for isNameByte(s.byteAt(i)) {
		i++
	}
	return i
}

func isNameByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '_'
}

// fetchName reads *alias or &anchor.
func (s *scanner) fetchName(mark byte) error {
	if err := s.saveKey(); err != nil {
		return err
	}
	s.keyAllowed = false
	start := s.pos
	end := s.nameEnd(start + 1)
	t := token{kind: anchorName, at: start, text: s.src[start+1 : end]}
	what := "anchor"
	if mark == '*' {
		t.kind, what = aliasName, "alias"
	}
	if t.text == "" || !s.blankAt(end) && strings.IndexByte("?:,]}%@`", s.byteAt(end)) < 0 {
		return &problem{
			at: end, message: "expected letters and digits for the name of an " + what, resume: s.pos,
			hint: "put a value that starts with " + string(rune(mark)) + " in quotes",
		}
	}
	s.pos = end
	s.push(t)
	return nil
}

// fetchTag reads !name, !!name, !handle!name or !<uri>.
func (s *scanner) fetchTag() error {
	if err := s.saveKey(); err != nil {
		return err
	}
	s.keyAllowed = false
	t := token{kind: tagName, at: s.pos}
	var err error
	if s.byteAt(s.pos+1) == '<' {
		s.pos += 2
		if t.text, err = s.tagURI(true); err == nil && s.byteAt(s.pos) != '>' {
			err = &problem{at: s.pos, message: "did not find the expected '>' of this tag", resume: s.pos}
		}
		s.pos++
	} else {
		err = s.shorthandTag(&t)
	}
	if err != nil {
		return err
	}
	if !s.blankAt(s.pos) && (s.flow == 0 || s.byteAt(s.pos) != ',') {
		return &problem{
			at: s.pos, message: "did not find expected white space after a tag", resume: s.pos,
			hint: "put a value that starts with ! in quotes",
		}
	}
	s.push(t)
	return nil
}

func (s *scanner) shorthandTag(t *token) (err error) {
	start := s.pos
	end := s.nameEnd(start + 1)
	if s.byteAt(end) == '!' && end > start {
		t.handle = s.src[start : end+1]
		s.pos = end + 1
		t.text, err = s.tagURI(false)
		if err == nil && t.text == "" {
			err = &problem{at: s.pos, message: "did not find the expected name of this tag", resume: s.pos}
		}
		return err
	}
	t.handle = "!"
	s.pos = start + 1
	t.text, err = s.tagURI(false)
	if t.text == "" { // a single ! requests no particular type
		t.handle, t.text = "", "!"
	}
	return err
}

// tagURI reads the characters of a tag and decodes %xx.
func (s *scanner) tagURI(verbatim bool) (string, error) {
	start := s.pos
	for {
		c := s.byteAt(s.pos)
		ok := isNameByte(c) || c != 0 && strings.IndexByte(";/?:@&=+$.!~*'()%", c) >= 0
		if !ok && (!verbatim || c != ',' && c != '[' && c != ']') {
			break
		}
		s.pos++
	}
	text := s.src[start:s.pos]
	if verbatim && text == "" {
		return "", &problem{at: s.pos, message: "did not find the expected name of this tag", resume: s.pos}
	}
	if !strings.Contains(text, "%") {
		return text, nil
	}
	decoded, err := url.PathUnescape(text)
	if err != nil || !utf8.ValidString(decoded) {
		return "", &problem{at: start, message: "found an incorrect escape in a tag", resume: s.pos}
	}
	return decoded, nil
}

// fetchDirective reads %YAML or %TAG.
func (s *scanner) fetchDirective() error {
	s.unroll(-1)
	if err := s.dropKey(); err != nil {
		return err
	}
	s.keyAllowed = false
	start := s.pos
	end := start
	for end < len(s.src) && s.breakAt(end) == 0 {
		end++
	}
	line := s.src[start+1 : end]
	if i := strings.Index(line, " #"); i >= 0 {
		line = line[:i]
	}
	s.pos = end
	t, err := directive(strings.Fields(line))
	if err != nil {
		return &problem{at: start, message: err.Error(), resume: end, hint: "put a value that starts with % in quotes"}
	}
	t.at = start
	s.push(t)
	return nil
}

func directive(words []string) (token, error) {
	switch {
	case len(words) == 0 || words[0] != "YAML" && words[0] != "TAG":
		return token{}, &problem{message: "found unknown directive name"}
	case words[0] == "YAML" && len(words) == 2:
		if words[1] != "1.1" && words[1] != "1.2" {
			return token{}, &problem{message: "found incompatible YAML document (version 1.1 or 1.2 is required)"}
		}
		return token{kind: versionDirective, text: words[1]}, nil
	case words[0] == "TAG" && len(words) == 3 && isHandle(words[1]):
		return token{kind: tagDirective, handle: words[1], text: words[2]}, nil
	}
	return token{}, &problem{message: "found a malformed directive"}
}

func isHandle(s string) bool {
	if s == "!" || s == "!!" {
		return true
	}
	return len(s) > 2 && s[0] == '!' && s[len(s)-1] == '!' && strings.IndexFunc(s[1:len(s)-1], func(r rune) bool {
		return r >= utf8.RuneSelf || !isNameByte(byte(r))
	}) < 0
}
