package publish

import (
	"fmt"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Mistake says that what was asked for cannot be, whatever the store says: who asked has to ask
// otherwise.
type Mistake struct {
	what string
	hint string
}

// NewMistake makes a Mistake; hint says how to ask.
func NewMistake(hint, format string, args ...any) error {
	return &Mistake{what: fmt.Sprintf(format, args...), hint: hint}
}

func (m *Mistake) Error() string { return m.what }

// Hint says what to do instead.
func (m *Mistake) Hint() string { return m.hint }

// Stale says that a draft can no longer be committed.
func Stale(role, format string, args ...any) error {
	return NewMistake("others changed "+role+" meanwhile: make the draft again, and sign that", format, args...)
}

func CheckRef(ref artifact.Ref) error {
	if err := trust.CheckProject(ref.Project); err != nil {
		return err
	}
	return artifact.CheckChannel(ref.Channel)
}

// MistakeOf makes a Mistake of an error that says how to ask.
func MistakeOf(err error) error {
	return NewMistake(diag.HintOf(err), "%s", fmt.Sprint(err))
}
