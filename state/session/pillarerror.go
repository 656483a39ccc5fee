package session

import (
	"errors"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// PillarError says that the pillar does not compile. Nothing runs then; who only looks may see what
// there is of it.
type PillarError struct {
	Problems error // a diag.List
}

func (e *PillarError) Error() string { return e.Problems.Error() }
func (e *PillarError) Unwrap() error { return e.Problems }

// withErrors is a pillar that says what is wrong with it, where people look for that.
func withErrors(pillar *value.Map, err error) *value.Map {
	pillar = pillar.Clone()
	pillar.Set("_errors", Messages(err))
	return pillar
}

// redactError is an error without secrets in its text. One of the pillar stays one of the pillar.
func (s *Session) redactError(err error) error {
	var broken *PillarError
	if errors.As(err, &broken) {
		return &PillarError{Problems: s.Redactor.Error(broken.Problems)}
	}
	return s.Redactor.Error(err)
}
