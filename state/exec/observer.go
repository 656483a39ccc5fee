package exec

import (
	"context"

	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/redact"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Observer receives the events of a run, step by step.
type Observer interface {
	StepStarted(s *compile.Step)
	StepDone(r *Result)
}

// RedactorUser is an observer that receives the redactor of the run before the first step.
type RedactorUser interface{ Redacting(r *redact.Redactor) }

// ProgramObserver is an observer that receives all steps in their order before the first one starts.
type ProgramObserver interface{ ProgramStarted(steps []*compile.Step) }

// Guarding is an observer that is called when a guard of the step that started last, or of one that runs in
// parallel, starts to run a command or function, and when it has ended.
type Guarding interface {
	GuardStarted()
	GuardDone()
}

// Caller runs a function for guards that are written as functions (unless: - fun: ...).
type Caller interface {
	Call(ctx context.Context, function string, args []any, kwargs *value.Map) (any, error)
}
