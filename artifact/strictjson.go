package artifact

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// CheckJSON refuses a JSON document that two parsers may read differently: an object with a duplicate key, since
// parsers differ in which value they use; a number that is not a plain integer, such as 1e3, 1.0 or -0; and bytes that
// are not UTF-8, which parsers replace. The keys of the document itself and of its signed part must not differ only in
// case either, since Go's decoder accepts "Version" for "version". Unknown keys are accepted: later versions of this
// program write more.
func CheckJSON(document []byte) error {
	if !utf8.Valid(document) {
		return errors.New("the document is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	var open scopes
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) && len(open) == 0 {
			return nil
		}
		if err == nil {
			err = open.take(token)
		}
		if err != nil {
			return fmt.Errorf("byte %d: %w", d.InputOffset(), err)
		}
	}
}

// maxNesting is how deeply objects and lists may be nested.
const maxNesting = 100

// scope is an open object or list.
type scope struct {
	keys  map[string]bool // the keys of an object so far; nil for a list
	value bool            // the next token of an object is a value
	last  string          // the last key
}

type scopes []scope

func (s *scopes) take(token json.Token) error {
	switch token := token.(type) {
	case json.Delim:
		return s.delimiter(token)
	case json.Number:
		if err := plainInteger(token.String()); err != nil {
			return err
		}
	case string:
		if top := s.top(); top != nil && top.keys != nil && !top.value {
			return s.key(token)
		}
	}
	s.valueDone()
	return nil
}

func (s *scopes) delimiter(d json.Delim) error {
	switch d {
	case '{':
		*s = append(*s, scope{keys: map[string]bool{}})
	case '[':
		*s = append(*s, scope{})
	default:
		*s = (*s)[:len(*s)-1]
		s.valueDone()
	}
	if len(*s) > maxNesting {
		return fmt.Errorf("objects and lists are in each other more than %d deep", maxNesting)
	}
	return nil
}

func (s *scopes) key(key string) error {
	top := s.top()
	same := key
	if s.named() {
		same = strings.ToLower(key)
	}
	if top.keys[same] {
		return fmt.Errorf("the key %.60q is there twice", key)
	}
	top.keys[same], top.value, top.last = true, true, key
	return nil
}

// named reports whether the keys of the innermost object are defined by the format; otherwise they are data, such as
// versions.
func (s *scopes) named() bool { return len(*s) == 1 || len(*s) == 2 && (*s)[0].last == "signed" }

func (s *scopes) valueDone() {
	if top := s.top(); top != nil {
		top.value = false
	}
}

func (s *scopes) top() *scope {
	if len(*s) == 0 {
		return nil
	}
	return &(*s)[len(*s)-1]
}

// plainInteger refuses a number that can be written in several ways, or has more digits than parsers keep.
func plainInteger(number string) error {
	digits := strings.TrimPrefix(number, "-")
	if strings.ContainsAny(digits, ".eE") || number == "-0" {
		return fmt.Errorf("the number %.30s is not a plain integer", number)
	}
	if _, err := strconv.ParseInt(number, 10, 64); err != nil {
		return fmt.Errorf("the number %.30s is not an integer of 64 bits", number)
	}
	return nil
}
