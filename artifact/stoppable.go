package artifact

import (
	"context"
	"io"
)

// Stoppable returns a reader whose reads fail with the context's error once the context has ended, so that copying or
// hashing a large file ends too. A read in progress is not interrupted.
func Stoppable(ctx context.Context, r io.Reader) io.Reader { return stoppable{ctx, r} }

type stoppable struct {
	ctx context.Context
	io.Reader
}

func (s stoppable) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.Reader.Read(p)
}

// StoppableWriter is like Stoppable for a writer.
func StoppableWriter(ctx context.Context, w io.Writer) io.Writer { return stoppableWriter{ctx, w} }

type stoppableWriter struct {
	ctx context.Context
	io.Writer
}

func (s stoppableWriter) Write(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.Writer.Write(p)
}
