package module

import "context"

// Later lets the Apply of a Resource do work for later steps of the run.
type Later struct {
	// States returns the resources of later steps of the same state that will run regardless of the results of the
	// steps before them, up to the first step that may change the packages available to them. They are not checked yet.
	States func() []Resource
	// Beside runs f concurrently with the steps of the run. The context of f is done at the end of the run, which waits
	// for f. A failure of f fails no step.
	Beside func(f func(ctx context.Context))
}

type laterKey struct{}

// WithLater returns a context for an Apply or a Batch that may do something for later steps.
func WithLater(ctx context.Context, l *Later) context.Context {
	return context.WithValue(ctx, laterKey{}, l)
}

// LaterOf returns the Later that [WithLater] put into a context, or nil.
func LaterOf(ctx context.Context) *Later {
	l, _ := ctx.Value(laterKey{}).(*Later)
	return l
}
