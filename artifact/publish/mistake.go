package publish

import (
	"fmt"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Mistake is the error for a request that cannot succeed whatever the store contains: the user has to ask for something
// else.
type Mistake struct {
	what string
	hint string
}

// NewMistake returns a Mistake. hint says what to ask for instead.
func NewMistake(hint, format string, args ...any) error {
	return &Mistake{what: fmt.Sprintf(format, args...), hint: hint}
}

func (m *Mistake) Error() string { return m.what }

// Hint says what to ask for instead.
func (m *Mistake) Hint() string { return m.hint }

// Stale returns the error for a draft that can no longer be committed.
func Stale(role, format string, args ...any) error {
	return NewMistake("others changed "+role+" meanwhile: make the draft again, and sign that", format, args...)
}

// CheckRef checks a channel's project and name.
func CheckRef(ref artifact.Ref) error {
	if err := trust.CheckProject(ref.Project); err != nil {
		return err
	}
	return artifact.CheckChannel(ref.Channel)
}

// MistakeOf makes a Mistake of an error that carries a hint.
func MistakeOf(err error) error {
	return NewMistake(diag.HintOf(err), "%s", fmt.Sprint(err))
}
