package state

import (
	"context"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// SLS compiles the named SLS files instead of those that a top file assigns. Procedures of a project use it, whichever
// engine converges the host.
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
