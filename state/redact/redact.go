// Package redact removes secrets from the output of a run: the terminal, the journal, reports, notifications, error
// messages and the ledger.
//
// A run has one Redactor. Code that decrypts a value adds it, and code that shows text passes it through
// [Redactor.Text], after it was rendered and before it is truncated. A secret is found as it is, line by line, and in
// the forms in which programs print their input: base64, hexadecimal, and escaped for URLs, JSON, shells and Go. It
// cannot find a secret that was changed in another way, for example by hashing, reversing or splitting it.
//
// URLs need no list: [URLs] removes the credentials from those in any text.
package redact

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Mark replaces a secret.
const Mark = "<secret>"

// Shortest is the length in bytes from which a secret is replaced inside of other text. Shorter ones would match
// everywhere, and are replaced only if they are the whole text.
const Shortest = 5

// Redactor holds the secrets of a run. The zero Redactor holds none. It is safe for concurrent use, and a nil *Redactor
// redacts nothing.
type Redactor struct {
	mu    sync.RWMutex
	plain map[string]bool // the secrets that were added
	whole map[string]bool // texts that are replaced if they are the whole text
	parts patterns        // texts that are replaced inside of others
}

// Add adds secrets. It ignores empty texts and those that were added before.
func (r *Redactor) Add(secrets ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.plain == nil {
		r.plain, r.whole = map[string]bool{}, map[string]bool{}
	}
	for _, secret := range secrets {
		if r.plain[secret] || strings.TrimSpace(secret) == "" {
			continue
		}
		r.plain[secret] = true
		for _, form := range forms(secret) {
			if r.whole[form] {
				continue
			}
			r.whole[form] = true
			if len(form) >= Shortest {
				r.parts.add(form)
			}
		}
	}
}

// Secrets returns the secrets that were added, sorted.
func (r *Redactor) Secrets() []string {
	if r == nil {
		return nil
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Sorted(maps.Keys(r.plain))
}

// Empty reports whether there are no secrets.
func (r *Redactor) Empty() bool {
	if r == nil {
		return true
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.plain) == 0
}

// In reports whether a text contains a secret.
func (r *Redactor) In(text string) bool {
	if r.Empty() {
		return false
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.whole[text] || r.whole[strings.TrimSpace(text)] || len(r.parts.in(text)) > 0
}

// Text returns a text in which [Mark] replaces each secret. Secrets that overlap are replaced as one.
func (r *Redactor) Text(text string) string {
	if r.Empty() || text == "" {
		return text
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.whole[text] || r.whole[strings.TrimSpace(text)] {
		return Mark
	}
	found := r.parts.in(text)
	if len(found) == 0 {
		return text
	}
	var out strings.Builder
	at := 0
	for _, span := range found {
		out.WriteString(text[at:span.from])
		out.WriteString(Mark)
		at = span.to
	}
	out.WriteString(text[at:])
	return out.String()
}

// Value applies Text to all strings in a value, keys included. A number that is a secret becomes [Mark]. A value
// without a secret may be returned itself; it is never changed.
func (r *Redactor) Value(v any) any {
	if r.Empty() {
		return v
	}
	return rewrite(v, r.leaf)
}

func (r *Redactor) leaf(v any) any {
	switch v := v.(type) {
	case nil, bool:
		return v
	case string:
		return r.Text(v)
	case []byte:
		if text := string(v); r.In(text) {
			return []byte(r.Text(text))
		}
		return v
	case float64:
		if r.In(strings.TrimSuffix(value.Str(v), ".0")) {
			return Mark
		}
	}
	if text := fmt.Sprint(v); r.In(text) {
		return Mark
	}
	return v
}

// Error returns an error without secrets in its text and its hint. Problems in files keep their positions;
// an error that holds no secret is returned unchanged, with the errors that it wraps.
func (r *Redactor) Error(err error) error {
	if err == nil || r.Empty() {
		return err
	}
	var list diag.List
	if errors.As(err, &list) {
		return r.problems(list)
	}
	if !r.In(err.Error()) && !r.In(diag.HintOf(err)) {
		return err
	}
	return diag.KeepHint(&redacted{text: r.Text(err.Error()), shown: err, cause: diag.CauseOf(err)},
		r.Text(diag.HintOf(err)))
}

func (r *Redactor) problems(list diag.List) diag.List {
	shown := make(diag.List, len(list))
	for i, d := range list {
		one := *d
		one.Message, one.Hint, one.Excerpt = r.Text(d.Message), r.Text(d.Hint), r.Text(d.Excerpt)
		shown[i] = &one
	}
	return shown
}

// redacted is an error whose text was redacted. Callers can still find its type and the error number of the host.
type redacted struct {
	text  string
	shown error
	cause error // result of Unwrap; nil for none
}

func (e *redacted) Error() string        { return e.text }
func (e *redacted) Is(target error) bool { return errors.Is(e.shown, target) }
func (e *redacted) Unwrap() error        { return e.cause }
