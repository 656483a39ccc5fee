package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// smallBody is the number of bytes that Put keeps in memory for a retry if it cannot rewind a reader.
const smallBody = 1 << 20

// Put repeats a write if its reader allows: one that can seek is rewound, a small one is kept in memory, any other is
// tried only once. If a response was lost, a repeated conditional write may find the object of its own first attempt
// and be refused. Therefore the object is then read, and if it has the bytes to be written, the write has succeeded. So
// two writers that must know which of them succeeded must not write the same bytes, and signed metadata does not. If
// yet another writer has replaced the object since, the write is refused although it had succeeded: nothing is lost,
// and a writer that starts again from the present object finds its own change in it.
func (r *retrying) Put(ctx context.Context, key string, body io.Reader, size int64, cond Condition) (Info, error) {
	rewind, err := rewinder(body, size)
	if err != nil {
		return Info{}, fmt.Errorf("reading the source of %s: %w", key, err)
	}
	if rewind == nil || ctx.Value(onceKey{}) != nil {
		return r.inner.Put(ctx, key, body, size, cond)
	}
	p, lost, kept := r.patience(), false, int64(0)
	for {
		again, err := rewind()
		if err != nil {
			return Info{}, fmt.Errorf("rewinding the source of %s: %w", key, err)
		}
		info, err := r.inner.Put(p.within(ctx), key, again, size, cond)
		if err == nil {
			return info, nil
		}
		if lost && errors.Is(err, ErrPrecondition) {
			return r.settle(ctx, key, rewind, size, err)
		}
		lost = lost || !errors.Is(err, ErrThrottled) // a throttled request had no effect
		if n := keptBytes(err); n > kept {
			kept = n
			p.progress()
		}
		if err = p.wait(ctx, err); err != nil {
			return Info{}, err
		}
	}
}

type onceKey struct{}

// Once returns a context in which Retry tries a Put once and returns its result unchanged.
func Once(ctx context.Context) context.Context { return context.WithValue(ctx, onceKey{}, true) }

type creatingKey struct{}

// Creating returns a context in which a Put sets up a store: it makes a missing directory and writes into an empty one.
// Any other Put takes such a directory for the mount point of a share that is not mounted.
func Creating(ctx context.Context) context.Context {
	return context.WithValue(ctx, creatingKey{}, true)
}

// MayCreate reports whether a context was made by [Creating].
func MayCreate(ctx context.Context) bool { return ctx.Value(creatingKey{}) != nil }

type displacingKey struct{}

// Displacing returns a context in which a Put to a directory store may rename what has the name of the object and is no
// file, and remove what is in place of a directory above it; for a Get, a link that leads out of the store is no
// object. Without it, such calls fail.
func Displacing(ctx context.Context) context.Context {
	return context.WithValue(ctx, displacingKey{}, true)
}

// MayDisplace reports whether a context was made by [Displacing].
func MayDisplace(ctx context.Context) bool { return ctx.Value(displacingKey{}) != nil }

type lockWaitKey struct{}

// LockWait returns a context in which a write waits at most for limit while another writer holds a lock of the store.
func LockWait(ctx context.Context, limit time.Duration) context.Context {
	return context.WithValue(ctx, lockWaitKey{}, limit)
}

// LockWaitOf returns the limit of [LockWait]; 0 if there is none.
func LockWaitOf(ctx context.Context) time.Duration {
	limit, _ := ctx.Value(lockWaitKey{}).(time.Duration)
	return limit
}

// keptBytes returns how much of an upload the store keeps for a retry.
func keptBytes(err error) int64 {
	var e *Error
	if errors.As(err, &e) {
		return e.Kept
	}
	return 0
}

// rewinder returns a function that returns the body from its start, or nil if it cannot be rewound.
func rewinder(body io.Reader, size int64) (func() (io.Reader, error), error) {
	if s, ok := body.(io.Seeker); ok {
		if start, err := s.Seek(0, io.SeekCurrent); err == nil {
			return func() (io.Reader, error) {
				_, err := s.Seek(start, io.SeekStart)
				return body, err
			}, nil
		}
	}
	if size > smallBody {
		return nil, nil
	}
	held, err := io.ReadAll(io.LimitReader(body, size+1)) // one byte more, so that the store notices a wrong size
	return func() (io.Reader, error) { return bytes.NewReader(held), nil }, err
}

// settle checks whether the object under key has the bytes to be written; if not, it returns refused.
func (r *retrying) settle(ctx context.Context, key string, rewind func() (io.Reader, error),
	size int64, refused error) (Info, error) {
	ours, err := rewind()
	if err != nil {
		return Info{}, refused
	}
	theirs, info, err := r.Get(ctx, key, 0)
	if errors.Is(err, ErrNotFound) {
		return Info{}, refused
	}
	if err != nil {
		return Info{}, fmt.Errorf("finding out whether the write of %s has won: %w", key, err)
	}
	defer theirs.Close()
	same, err := sameBytes(ours, io.LimitReader(theirs, size+1))
	if err != nil {
		return Info{}, fmt.Errorf("finding out whether the write of %s has won: %w", key, err)
	}
	if !same {
		return Info{}, refused
	}
	return info, nil
}

func sameBytes(a, b io.Reader) (bool, error) {
	bufA, bufB := make([]byte, 32<<10), make([]byte, 32<<10)
	for {
		n, errA := io.ReadFull(a, bufA)
		m, errB := io.ReadFull(b, bufB)
		if !bytes.Equal(bufA[:n], bufB[:m]) {
			return false, nil
		}
		for _, err := range []error{errA, errB} {
			if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				return false, err
			}
		}
		if errA != nil {
			return true, nil
		}
	}
}
