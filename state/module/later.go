package module

import "context"

// Later is what a Resource that acts may do for steps whose turn comes later in the run.
type Later struct {
	// States are the resources of later steps of the same state whose turn comes whatever the steps before them do, up to
	// the first step that may change what there is to fetch for them. None of them is checked.
	States func() []Resource
	// Beside starts f beside the steps of the run. The context of f is done when the run ends, which waits for f. What
	// fails in f is no failure of a step.
	Beside func(f func(ctx context.Context))
}

type laterKey struct{}

// WithLater returns a context for an Apply or a Batch that may do something for later steps.
func WithLater(ctx context.Context, l *Later) context.Context {
	return context.WithValue(ctx, laterKey{}, l)
}

// LaterOf returns what [WithLater] put into a context, or nil.
func LaterOf(ctx context.Context) *Later {
	l, _ := ctx.Value(laterKey{}).(*Later)
	return l
}
