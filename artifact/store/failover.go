package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
)

// Failover reads from the first of several stores that gives an object, and goes on with that one: the
// others are mirrors. It moves on where a store cannot be reached, asks to slow down, denies access or
// has no such object. It writes to the first. The caller checks what comes, as mirrors may be behind.
func Failover(first Store, mirrors ...Store) Store {
	if len(mirrors) == 0 {
		return first
	}
	return &failover{stores: append([]Store{first}, mirrors...)}
}

type failover struct {
	stores  []Store
	current atomic.Int32
}

func (f *failover) Get(ctx context.Context, key string, from int64) (io.ReadCloser, Info, error) {
	return f.GetRange(ctx, key, Range{From: from})
}

func (f *failover) GetRange(ctx context.Context, key string, part Range) (io.ReadCloser, Info, error) {
	start := int(f.current.Load())
	var errs []error
	for i := range f.stores {
		at := (start + i) % len(f.stores)
		body, info, err := GetRange(ctx, f.stores[at], key, part)
		if err == nil {
			f.current.Store(int32(at))
			return body, info, nil
		}
		errs = append(errs, err)
		// An ETag is one store's own.
		if !away(err) || ctx.Err() != nil || part.ETag != "" {
			break
		}
	}
	return nil, Info{}, allFailed(errs)
}

// away reports whether another store may well do better.
func away(err error) bool {
	return errors.Is(err, ErrUnreachable) || errors.Is(err, ErrThrottled) || errors.Is(err, ErrForbidden) || errors.Is(err, ErrNotFound)
}

// Each are the stores that a Failover reads from, the one in use first. Any other store is alone.
func Each(s Store) []Store {
	f, ok := s.(*failover)
	if !ok {
		return []Store{s}
	}
	at := int(f.current.Load())
	return append(slices.Clone(f.stores[at:]), f.stores[:at]...)
}

// Prefer makes a Failover go on with the store that has this place in Each, because the answers of
// those before it are no good.
func Prefer(s Store, place int) {
	if f, ok := s.(*failover); ok {
		f.current.Store((f.current.Load() + int32(place)) % int32(len(f.stores)))
	}
}

// allFailed is what several stores answered, in one line.
func allFailed(errs []error) error {
	all := errs[0]
	for _, err := range errs[1:] {
		all = fmt.Errorf("%w; then %w", all, err)
	}
	return all
}

func (f *failover) Put(ctx context.Context, key string, r io.Reader, size int64, cond Condition) (Info, error) {
	return f.stores[0].Put(ctx, key, r, size, cond)
}

// List moves on only before the first key: the rest of another store's list may be that of another
// time.
func (f *failover) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		start := int(f.current.Load())
		var errs []error
		for i := range f.stores {
			begun := false
			for info, err := range f.stores[(start+i)%len(f.stores)].List(ctx, prefix) {
				if err != nil && !begun && away(err) && ctx.Err() == nil {
					errs = append(errs, err)
					break
				}
				if begun = true; !yield(info, err) {
					return
				}
			}
			if begun || len(errs) == i {
				return
			}
		}
		yield(Info{}, allFailed(errs))
	}
}

func (f *failover) Delete(ctx context.Context, key string) error {
	return f.stores[0].Delete(ctx, key)
}

// Turns reads parts of one immutable object from a store and its mirrors, and changes to the next
// one when the one in use fails, in the middle of the object too. It is safe for concurrent use.
type Turns struct {
	key    string
	stores []Store

	mu      sync.Mutex
	current int
	etags   []string // of the object, in each store that was asked
}

// NewTurns reads an object of a store, which may be a Failover.
func NewTurns(s Store, key string) *Turns {
	stores := []Store{s}
	if f, ok := s.(*failover); ok {
		stores = f.stores
	}
	return &Turns{key: key, stores: stores, etags: make([]string, len(stores))}
}

// Key is that of the object.
func (t *Turns) Key() string { return t.key }

// Stores is from how many stores the object may come.
func (t *Turns) Stores() int { return len(t.stores) }

// At is one of the stores, for who tries all of them.
func (t *Turns) At(i int) Store { return t.stores[i] }

// Open opens a part in the store whose turn it is, of the version that was read there before. The
// number returned is the store's, for Failed.
func (t *Turns) Open(ctx context.Context, from, length int64) (body io.ReadCloser, info Info, at int, err error) {
	t.mu.Lock()
	at = t.current
	part := Range{From: from, Length: length, ETag: t.etags[at]}
	t.mu.Unlock()
	body, info, err = GetRange(ctx, t.stores[at], t.key, part)
	if err == nil {
		t.mu.Lock()
		t.etags[at] = info.ETag
		t.mu.Unlock()
	}
	return body, info, at, err
}

// Failed says that a store failed, so that the next one gets its turn. Several readers that met the
// same failure move on once. An object that was replaced meanwhile is read as it is now: only
// digests decide whether it is the right one.
func (t *Turns) Failed(at int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if errors.Is(err, ErrPrecondition) && t.etags[at] != "" {
		t.etags[at] = ""
		return
	}
	if at == t.current {
		t.current = (t.current + 1) % len(t.stores)
	}
}
