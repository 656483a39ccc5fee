package yaml

// scanner splits the text into tokens.
//
// A key of YAML is recognized only at its colon. So the scanner stores the possible start of a key for every level of
// brackets. At the colon, it inserts a key token, and perhaps the start of a mapping, before the tokens that it has
// returned since.
type scanner struct {
	src        string
	pos        int
	line       int // counts line breaks before pos
	lineStart  int // start of the line of pos
	indent     int // column of the innermost block collection, -1 outside of any
	indents    []int
	flow       int // depth of brackets
	keyAllowed bool
	keys       []possibleKey // one for every depth of brackets
	queue      []token
	head       int  // index of the first token of queue that was not taken
	taken      int  // tokens taken so far
	settled    bool // no token will be inserted before the first token of queue
	ended      bool
}

func newScanner(src string, start int) *scanner {
	return &scanner{
		src: src, pos: start, lineStart: start, indent: -1, keyAllowed: true,
		keys: make([]possibleKey, 1, 8), queue: make([]token, 0, 32),
	}
}

// peek returns the next token without taking it.
func (s *scanner) peek() (*token, error) {
	if s.settled {
		return &s.queue[s.head], nil
	}
	for s.head == len(s.queue) || s.awaitsColon() {
		if err := s.fetch(); err != nil {
			return nil, err
		}
	}
	s.settled = true
	return &s.queue[s.head], nil
}

// skip takes the token that peek returned.
func (s *scanner) skip() {
	s.settled = false
	s.head++
	s.taken++
	if s.head == len(s.queue) {
		s.queue, s.head = s.queue[:0], 0
	}
}

func (s *scanner) byteAt(i int) byte {
	if i < len(s.src) {
		return s.src[i]
	}
	return 0
}

func (s *scanner) column() int { return s.pos - s.lineStart }

// breakAt returns the length of the line break at i, or 0.
func (s *scanner) breakAt(i int) int {
	switch s.byteAt(i) {
	case '\n':
		return 1
	case '\r':
		if s.byteAt(i+1) == '\n' {
			return 2
		}
		return 1
	case 0xc2:
		if s.byteAt(i+1) == 0x85 { // next line
			return 2
		}
	case 0xe2:
		if last := s.byteAt(i + 2); s.byteAt(i+1) == 0x80 && (last == 0xa8 || last == 0xa9) { // line and paragraph separator
			return 3
		}
	}
	return 0
}

// blankAt reports whether a space, a tab, a line break or the end is at i.
func (s *scanner) blankAt(i int) bool {
	switch s.byteAt(i) {
	case ' ', '\t', '\n', '\r', 0:
		return true
	case 0xc2, 0xe2:
		return s.breakAt(i) > 0
	}
	return false
}

// newLine skips the line break at pos and returns its value inside a scalar.
func (s *scanner) newLine() string {
	n := s.breakAt(s.pos)
	text := "\n"
	if n == 3 {
		text = s.src[s.pos : s.pos+3]
	}
	s.pos += n
	s.line++
	s.lineStart = s.pos
	return text
}

// documentMark reports whether --- or ... is a word of its own at the start of this line.
func (s *scanner) documentMark() bool {
	if s.pos != s.lineStart || s.pos+3 > len(s.src) {
		return false
	}
	mark := s.src[s.pos : s.pos+3]
	return (mark == "---" || mark == "...") && s.blankAt(s.pos+3)
}

// skipBlank skips spaces, comments and line breaks up to the next token. A tab is allowed between tokens, but not as
// indentation.
func (s *scanner) skipBlank() {
	for {
		s.skipByteOrderMark()
		c := s.byteAt(s.pos)
		for c == ' ' || c == '\t' && (s.flow > 0 || !s.keyAllowed) {
			s.pos++
			c = s.byteAt(s.pos)
		}
		if c == '#' {
			for s.pos < len(s.src) && s.breakAt(s.pos) == 0 {
				s.pos++
			}
		}
		if s.breakAt(s.pos) == 0 {
			return
		}
		s.newLine()
		if s.flow == 0 {
			s.keyAllowed = true
		}
	}
}

// skipByteOrderMark skips a byte order mark at the start of a line, which counts as one column.
func (s *scanner) skipByteOrderMark() {
	if s.pos == s.lineStart && s.byteAt(s.pos) == 0xef && s.byteAt(s.pos+1) == 0xbb && s.byteAt(s.pos+2) == 0xbf {
		s.pos += 3
		s.lineStart += 2
	}
}

// fetch reads at least one more token.
func (s *scanner) fetch() error {
	s.skipBlank()
	if err := s.dropStaleKeys(); err != nil {
		return err
	}
	s.unroll(s.column())
	c := s.byteAt(s.pos)
	if s.pos >= len(s.src) {
		return s.fetchEnd()
	}
	if s.pos == s.lineStart {
		if c == '%' {
			return s.fetchDirective()
		}
		if s.documentMark() {
			return s.fetchDocumentMark()
		}
	}
	switch c {
	case '[':
		return s.fetchFlowStart(flowSequenceStart)
	case '{':
		return s.fetchFlowStart(flowMappingStart)
	case ']':
		return s.fetchFlowEnd(flowSequenceEnd)
	case '}':
		return s.fetchFlowEnd(flowMappingEnd)
	case ',':
		return s.fetchFlowEntry()
	case '*', '&':
		return s.fetchName(c)
	case '!':
		return s.fetchTag()
	case '\'', '"':
		return s.fetchQuoted(c)
	}
	return s.fetchIndicatorOrScalar(c)
}

// fetchIndicatorOrScalar reads tokens whose kind depends on the next character too.
func (s *scanner) fetchIndicatorOrScalar(c byte) error {
	blank := s.blankAt(s.pos + 1)
	switch {
	case c == '-' && blank:
		return s.fetchBlockEntry()
	case c == '?' && (s.flow > 0 || blank):
		return s.fetchKey()
	case c == ':' && (s.flow > 0 || blank):
		return s.fetchValue()
	case (c == '|' || c == '>') && s.flow == 0:
		return s.fetchBlockScalar()
	case s.startsPlain(c, blank):
		return s.fetchPlain()
	}
	return s.cannotStart(c)
}

func (s *scanner) cannotStart(c byte) error {
	p := &problem{at: s.pos, message: "found character " + quoteByte(c) + " that cannot start any token", resume: s.pos}
	switch c {
	case '\t':
		p.hint = "indent with spaces, never with tabs"
	case '@', '`', '%', '|', '>':
		p.hint = "put the value in quotes"
	}
	return p
}

func quoteByte(c byte) string {
	if c == '\t' {
		return `'\t'`
	}
	return "'" + string(rune(c)) + "'"
}

func (s *scanner) push(t token) { s.queue = append(s.queue, t) }

// insert inserts a token before the one with the given number.
func (s *scanner) insert(number int, t token) {
	i := s.head + number - s.taken
	s.queue = append(s.queue, token{})
	copy(s.queue[i+1:], s.queue[i:])
	s.queue[i] = t
}
