package function

import (
	"context"
)

type retcodeKey struct{}

// WithRetcode has note called with the exit code of each command that a function runs with the context and that fails.
func WithRetcode(ctx context.Context, note func(code int)) context.Context {
	return context.WithValue(ctx, retcodeKey{}, note)
}

// NoteRetcode passes on the exit code of a command.
func (f *Facts) NoteRetcode(ctx context.Context, code int) {
	if note, ok := ctx.Value(retcodeKey{}).(func(int)); ok {
		note(code)
	}
	if f.Retcode != nil {
		f.Retcode(code)
	}
}
