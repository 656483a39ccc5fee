package publish

import (
	"fmt"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Mistake is the error for a request that cannot succeed with any content of the store, so that the user has to change
// the request.
type Mistake struct {
	what string
	hint string // with its code
}

// NewMistake returns a Mistake. The hint, about the topic, proposes another request.
func NewMistake(t diag.Topic, hint, format string, args ...any) error {
	return &Mistake{what: fmt.Sprintf(format, args...), hint: t.Coded(hint)}
}

func (m *Mistake) Error() string { return m.what }

// Hint returns a proposal for another request.
func (m *Mistake) Hint() string { return m.hint }

// Stale returns the error for a draft that can no longer be committed.
func Stale(role, format string, args ...any) error {
	return NewMistake(diag.Draft, "others changed "+role+" meanwhile: make the draft again, and sign that",
		format, args...)
}

// CheckRef checks a channel's project and name.
func CheckRef(ref artifact.Ref) error {
	if err := trust.CheckProject(ref.Project); err != nil {
		return err
	}
	return artifact.CheckChannel(ref.Channel)
}

// MistakeOf returns a Mistake with the text and the hint of an error.
func MistakeOf(err error) error {
	return NewMistake(diag.Usage, diag.HintOf(err), "%s", fmt.Sprint(err))
}
