package publish

import "fmt"

// Mistake says that what was asked for cannot be, whatever the store says: who asked has to ask
// otherwise.
type Mistake struct {
	what string
	hint string
}

// mistake makes a Mistake; hint says how to ask.
func mistake(hint, format string, args ...any) error {
	return &Mistake{what: fmt.Sprintf(format, args...), hint: hint}
}

func (m *Mistake) Error() string { return m.what }

// Hint says what to do instead.
func (m *Mistake) Hint() string { return m.hint }

// stale says that a draft can no longer be committed.
func stale(role, format string, args ...any) error {
	return mistake("others changed "+role+" meanwhile: make the draft again, and sign that", format, args...)
}
