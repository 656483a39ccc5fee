package artifact

import (
	"context"
	"io"
)

// Awaited returns a reader whose reads fail with the context's error when the context ends, even while a read of r
// blocks. Such a read of r is abandoned: nothing else may read from r afterwards, and closing the source of r must end
// the read.
func Awaited(ctx context.Context, r io.Reader) io.Reader { return &awaited{ctx: ctx, from: r} }

type awaited struct {
	ctx  context.Context
	from io.Reader
	// buffer is the data that was read, rest its unread part. An abandoned read may still write to it, so it is not
	// reused.
	buffer, rest []byte
	err          error
}

type readResult struct {
	n   int
	err error
}

const awaitedBuffer = 64 << 10

func (a *awaited) Read(p []byte) (int, error) {
	if len(a.rest) == 0 && a.err == nil {
		a.fill()
	}
	n := copy(p, a.rest)
	a.rest = a.rest[n:]
	if len(a.rest) > 0 {
		return n, nil
	}
	return n, a.err
}

// fill reads the next part or gives up. An error is kept for all later reads.
func (a *awaited) fill() {
	if a.err = a.ctx.Err(); a.err != nil {
		return
	}
	if a.buffer == nil {
		a.buffer = make([]byte, awaitedBuffer)
	}
	done := make(chan readResult, 1)
	go func() {
		n, err := a.from.Read(a.buffer)
		done <- readResult{n, err}
	}()
	select {
	case got := <-done:
		a.rest, a.err = a.buffer[:got.n], got.err
	case <-a.ctx.Done():
		a.err = a.ctx.Err()
	}
}
