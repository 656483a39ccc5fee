package session

import (
	"errors"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// PillarError is the error of a pillar that does not compile. No state runs then; functions that only read may use the
// part that compiles.
type PillarError struct {
	Problems error // a diag.List
}

func (e *PillarError) Error() string { return e.Problems.Error() }
func (e *PillarError) Unwrap() error { return e.Problems }

// withErrors returns a copy of the pillar with the problems under _errors, where Salt's users look for them.
func withErrors(pillar *value.Map, err error) *value.Map {
	pillar = pillar.Clone()
	pillar.Set("_errors", Messages(err))
	return pillar
}

// redactError returns an error without secrets in its text. A *PillarError stays a *PillarError.
func (s *Session) redactError(err error) error {
	var broken *PillarError
	if errors.As(err, &broken) {
		return &PillarError{Problems: s.Redactor.Error(broken.Problems)}
	}
	return s.Redactor.Error(err)
}
