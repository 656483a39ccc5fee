package yaml

type possibleKey struct {
	possible bool
	required bool // only a key is allowed at this column
	number   int  // of the token that would be the key
	at       int
	line     int
	column   int
}

// maxKeyLength is the maximum length in bytes of a key without a question mark.
const maxKeyLength = 1024

// awaitsColon reports whether the next token may still become a key.
func (s *scanner) awaitsColon() bool {
	if s.ended {
		return false
	}
	for i := range s.keys {
		k := &s.keys[i]
		if k.possible && k.number == s.taken && !s.stale(k) {
			return true
		}
	}
	return false
}

// stale reports whether a possible key can no longer be one, because of its length or a line break.
func (s *scanner) stale(k *possibleKey) bool {
	return k.line < s.line || s.pos-k.at > maxKeyLength && runesExceed(s.src[k.at:s.pos], maxKeyLength)
}

func runesExceed(s string, n int) bool {
	for range s {
		if n--; n < 0 {
			return true
		}
	}
	return false
}

// roll starts a block collection if the column is deeper than the last one. Number is the token before which it is
// inserted, or -1 for the end.
func (s *scanner) roll(column, number int, k kind, at int) {
	if s.flow > 0 || s.indent >= column {
		return
	}
	s.indents = append(s.indents, s.indent)
	s.indent = column
	if number < 0 {
		s.push(token{kind: k, at: at})
		return
	}
	s.insert(number, token{kind: k, at: at})
}

// unroll ends the block collections that are deeper than the column.
func (s *scanner) unroll(column int) {
	if s.flow > 0 {
		return
	}
	for s.indent > column {
		s.push(token{kind: blockEnd, at: s.pos})
		s.indent = s.indents[len(s.indents)-1]
		s.indents = s.indents[:len(s.indents)-1]
	}
}

func (s *scanner) dropStaleKeys() error {
	for i := range s.keys {
		k := &s.keys[i]
		if !k.possible || !s.stale(k) {
			continue
		}
		if k.required {
			return s.missingColon(k)
		}
		k.possible = false
	}
	return nil
}

func (s *scanner) missingColon(k *possibleKey) error {
	return &problem{
		at: k.at, message: "could not find expected ':' after this key", resume: s.pos,
		hint: "a line inside a mapping is `key: value`; indent it more if it belongs to the line above",
	}
}

// saveKey records that the next token may be a key.
func (s *scanner) saveKey() error {
	if !s.keyAllowed {
		return nil
	}
	if err := s.dropKey(); err != nil {
		return err
	}
	s.keys[len(s.keys)-1] = possibleKey{
		possible: true, required: s.flow == 0 && s.indent == s.column(),
		number: s.taken + len(s.queue) - s.head, at: s.pos, line: s.line, column: s.column(),
	}
	return nil
}

// dropKey drops the possible key at this depth of brackets.
func (s *scanner) dropKey() error {
	k := &s.keys[len(s.keys)-1]
	if k.possible && k.required {
		return s.missingColon(k)
	}
	k.possible = false
	return nil
}
