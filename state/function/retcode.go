package function

import (
	"context"
)

type retcodeKey struct{}

// WithRetcode returns a context in which note is called with the exit code of each command of a function.
func WithRetcode(ctx context.Context, note func(code int)) context.Context {
	return context.WithValue(ctx, retcodeKey{}, note)
}

// NoteRetcode reports the exit code of a command.
func (f *Facts) NoteRetcode(ctx context.Context, code int) {
	if note, ok := ctx.Value(retcodeKey{}).(func(int)); ok {
		note(code)
	}
	if f.Retcode != nil {
		f.Retcode(code)
	}
}
