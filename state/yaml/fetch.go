package yaml

func (s *scanner) fetchEnd() error {
	s.unroll(-1)
	if err := s.dropKey(); err != nil {
		return err
	}
	s.keyAllowed = false
	s.ended = true
	s.push(token{kind: streamEnd, at: s.pos})
	return nil
}

func (s *scanner) fetchDocumentMark() error {
	s.unroll(-1)
	if err := s.dropKey(); err != nil {
		return err
	}
	s.keyAllowed = false
	k := documentStart
	if s.src[s.pos] == '.' {
		k = documentEnd
	}
	s.push(token{kind: k, at: s.pos})
	s.pos += 3
	return nil
}

func (s *scanner) fetchFlowStart(k kind) error {
	if err := s.saveKey(); err != nil {
		return err
	}
	s.keys = append(s.keys, possibleKey{})
	s.flow++
	s.keyAllowed = true
	s.single(k)
	return nil
}

func (s *scanner) fetchFlowEnd(k kind) error {
	if err := s.dropKey(); err != nil {
		return err
	}
	if s.flow > 0 {
		s.flow--
		s.keys = s.keys[:len(s.keys)-1]
	}
	s.keyAllowed = false
	s.single(k)
	return nil
}

func (s *scanner) fetchFlowEntry() error {
	if err := s.dropKey(); err != nil {
		return err
	}
	s.keyAllowed = true
	s.single(flowEntry)
	return nil
}

// single pushes a token of one character.
func (s *scanner) single(k kind) {
	s.push(token{kind: k, at: s.pos})
	s.pos++
}

func (s *scanner) fetchBlockEntry() error {
	if s.flow == 0 {
		if !s.keyAllowed {
			return &problem{
				at: s.pos, message: "sequence entries are not allowed here", resume: s.pos,
				hint: "start the list on a line of its own",
			}
		}
		s.roll(s.column(), -1, blockSequenceStart, s.pos)
	}
	if err := s.dropKey(); err != nil {
		return err
	}
	s.keyAllowed = true
	s.single(blockEntry)
	return nil
}

func (s *scanner) fetchKey() error {
	if s.flow == 0 {
		if !s.keyAllowed {
			return &problem{at: s.pos, message: "mapping keys are not allowed here", resume: s.pos}
		}
		s.roll(s.column(), -1, blockMappingStart, s.pos)
	}
	if err := s.dropKey(); err != nil {
		return err
	}
	s.keyAllowed = s.flow == 0
	s.single(keyMark)
	return nil
}

func (s *scanner) fetchValue() error {
	k := &s.keys[len(s.keys)-1]
	if k.possible && !s.stale(k) {
		s.insert(k.number, token{kind: keyMark, at: k.at})
		s.roll(k.column, k.number, blockMappingStart, k.at)
		k.possible = false
		s.keyAllowed = false
	} else {
		if s.flow == 0 {
			if !s.keyAllowed {
				return &problem{
					at: s.pos, message: "mapping values are not allowed here", resume: s.pos,
					hint: "put a value that holds `: ` in quotes, and check the indentation of this line",
				}
			}
			s.roll(s.column(), -1, blockMappingStart, s.pos)
		}
		s.keyAllowed = s.flow == 0
	}
	s.single(valueMark)
	return nil
}
