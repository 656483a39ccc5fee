package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// smallBody is how many bytes Put holds in memory for a second try when it cannot rewind a reader.
const smallBody = 1 << 20

// Put repeats a write as often as its reader allows: one that seeks is rewound, a small one is
// held in memory, any other is tried once. When an answer got lost, a repeated conditional write
// may find its own first try in place and be refused for it. So then the object is read, and if
// it is what we write, the write has won. Two writers who must tell themselves apart therefore
// never write the same bytes, and signed metadata does not. When yet another writer has built on
// ours meanwhile, we are refused although we had won: nothing is lost, and a writer who starts
// over from what is there now finds its own work in it.
func (r *retrying) Put(ctx context.Context, key string, body io.Reader, size int64, cond Condition) (Info, error) {
	rewind, err := rewinder(body, size)
	if err != nil {
		return Info{}, fmt.Errorf("reading what is to be written to %s: %w", key, err)
	}
	if rewind == nil || ctx.Value(onceKey{}) != nil {
		return r.inner.Put(ctx, key, body, size, cond)
	}
	p, lost, kept := r.patience(), false, int64(0)
	for {
		again, err := rewind()
		if err != nil {
			return Info{}, fmt.Errorf("rewinding what is to be written to %s: %w", key, err)
		}
		info, err := r.inner.Put(ctx, key, again, size, cond)
		if err == nil {
			return info, nil
		}
		if lost && errors.Is(err, ErrPrecondition) {
			return r.settle(ctx, key, rewind, size, err)
		}
		lost = lost || !errors.Is(err, ErrThrottled) // who is throttled was not heard
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

// Once is a context in which Retry makes one try of a Put and gives its answer as it is.
func Once(ctx context.Context) context.Context { return context.WithValue(ctx, onceKey{}, true) }

type creatingKey struct{}

// Creating is a context in which a Put sets a store up: a directory that does not exist is made for it, and an empty one
// is written into. Every other Put takes such a directory for that of a share that is not mounted.
func Creating(ctx context.Context) context.Context {
	return context.WithValue(ctx, creatingKey{}, true)
}

// MayCreate reports whether a context is one of [Creating].
func MayCreate(ctx context.Context) bool { return ctx.Value(creatingKey{}) != nil }

type lockWaitKey struct{}

// LockWait is a context in which a write waits no longer than limit for another writer that holds a lock of the store.
func LockWait(ctx context.Context, limit time.Duration) context.Context {
	return context.WithValue(ctx, lockWaitKey{}, limit)
}

// LockWaitOf returns the limit of [LockWait]; 0 where there is none.
func LockWaitOf(ctx context.Context) time.Duration {
	limit, _ := ctx.Value(lockWaitKey{}).(time.Duration)
	return limit
}

// keptBytes is how much of an upload the store keeps for the next try.
func keptBytes(err error) int64 {
	var e *Error
	if errors.As(err, &e) {
		return e.Kept
	}
	return 0
}

// rewinder returns a function that gives the body from its start, or nil when there is none.
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
	held, err := io.ReadAll(io.LimitReader(body, size+1)) // one more, for the store to refuse
	return func() (io.Reader, error) { return bytes.NewReader(held), nil }, err
}

// settle tells whether the object under key is what we write, and returns refused when it is not.
func (r *retrying) settle(ctx context.Context, key string, rewind func() (io.Reader, error), size int64, refused error) (Info, error) {
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
