package state

import (
	"context"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// SLS compiles SLS files by name instead of those of a top file. Procedures of a project use it, regardless of the
// engine of converges.
func SLS(ctx context.Context, r Request, names ...string) (Program, error) {
	s := SessionFor(r)
	p, err := s.Program(ctx, s.Named(names...))
	if err != nil {
		s.Close()
		return nil, err
	}
	return &nativeProgram{session: s, program: p}, nil
}

// Data renders a file of the host and returns the mapping in it. The request's redactor receives the decrypted values.
func Data(ctx context.Context, r Request, file string) (*value.Map, error) {
	s := SessionFor(r)
	defer s.Close()
	return s.Data(ctx, file)
}
