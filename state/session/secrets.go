package session

import (
	"errors"
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// hidden stands where a secret was.
const hidden = "<secret>"

// shortest is the length from which a secret is looked for inside of other text. What is shorter
// would be found everywhere, and is hidden only where it is all there is.
const shortest = 5

// secrets are the values that were decrypted. They reach the host, and nobody's eyes.
type secrets struct {
	mu    sync.RWMutex
	whole map[string]bool
	parts []string // what is looked for inside of text: each secret, and its lines
}

func (s *secrets) add(plain string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.whole == nil {
		s.whole = map[string]bool{}
	}
	for _, text := range append(strings.Split(plain, "\n"), plain, strings.TrimSpace(plain)) {
		if text == "" || s.whole[text] {
			continue
		}
		s.whole[text] = true
		if len(text) >= shortest {
			s.parts = append(s.parts, text)
		}
	}
}

// In reports whether there is a secret in a text.
func (s *secrets) In(text string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.whole[text] {
		return true
	}
	for _, part := range s.parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// Hide gives a text without the secrets in it.
func (s *secrets) Hide(text string) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.whole[text] {
		return hidden
	}
	for _, part := range s.parts {
		text = strings.ReplaceAll(text, part, hidden)
	}
	return text
}

func (s *secrets) none() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.whole) == 0
}

// hideError is an error without the secrets in its text. Its problems in files keep their places.
func (s *secrets) hideError(err error) error {
	if err == nil || s.none() {
		return err
	}
	var broken *PillarError
	if errors.As(err, &broken) {
		return &PillarError{Problems: s.hideError(broken.Problems)}
	}
	var list diag.List
	if errors.As(err, &list) {
		shown := make(diag.List, len(list))
		for i, d := range list {
			shown[i] = &diag.Diagnostic{Pos: d.Pos, Message: s.Hide(d.Message), Hint: s.Hide(d.Hint), Excerpt: s.Hide(d.Excerpt), Cause: d.Cause}
		}
		return shown
	}
	if !s.In(err.Error()) && !s.In(diag.HintOf(err)) {
		return err
	}
	return diag.WithHint(&hiddenError{s.Hide(err.Error()), diag.CauseOf(err)}, "%s", s.Hide(diag.HintOf(err)))
}

// hiddenError keeps of an error what the host answered, which is no secret.
type hiddenError struct {
	text  string
	cause error
}

func (e *hiddenError) Error() string { return e.text }
func (e *hiddenError) Unwrap() error { return e.cause }

// HideIn is Hide for every string in a value, which is copied where it has any.
func (s *secrets) HideIn(v any) any {
	if s.none() {
		return v
	}
	switch v := v.(type) {
	case string:
		return s.Hide(v)
	case *value.Map:
		if v == nil {
			return v
		}
		m := value.NewMap()
		for key, item := range v.All() {
			_ = m.SetKey(s.HideIn(key), s.HideIn(item)) // what is a key can be one
		}
		return m
	case *value.List:
		return &value.List{Items: s.hideItems(v.Items)}
	case value.Tuple:
		return value.Tuple(s.hideItems(v))
	}
	return v
}

func (s *secrets) hideItems(items []any) []any {
	list := make([]any, len(items))
	for i, item := range items {
		list[i] = s.HideIn(item)
	}
	return list
}
