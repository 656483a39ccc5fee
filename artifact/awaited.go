package artifact

import (
	"context"
	"io"
)

// Awaited returns a reader whose reads end with the context's error when the context ends, also while a read of r waits for
// something that does not come. Such a read is left behind: nothing else may read from r afterwards, and closing what r reads
// from has to end it.
func Awaited(ctx context.Context, r io.Reader) io.Reader { return &awaited{ctx: ctx, from: r} }

type awaited struct {
	ctx  context.Context
	from io.Reader
	// What was read and not yet taken. A read that was left behind goes on writing to the buffer, so none is used again.
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

// fill reads the next part, or gives up. An error is kept for all later reads.
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
