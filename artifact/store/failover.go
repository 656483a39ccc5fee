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

// Failover returns a store that reads from the first of several stores that has an object, and then stays with it: the
// others are mirrors. It tries the next one if a store cannot be reached, throttles, denies access or lacks the object.
// It writes to the first. Mirrors may be out of date, so the caller must verify what it reads.
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
		// An ETag is only valid in one store.
		if !away(err) || ctx.Err() != nil || part.ETag != "" {
			break
		}
	}
	return nil, Info{}, allFailed(errs)
}

// away reports whether another store may succeed.
func away(err error) bool {
	return errors.Is(err, ErrUnreachable) || errors.Is(err, ErrThrottled) || errors.Is(err, ErrForbidden) ||
		errors.Is(err, ErrNotFound)
}

// Each returns the stores that a Failover reads from, the one in use first. Any other store is returned alone.
func Each(s Store) []Store {
	f, ok := s.(*failover)
	if !ok {
		return []Store{s}
	}
	at := int(f.current.Load())
	return append(slices.Clone(f.stores[at:]), f.stores[:at]...)
}

// Prefer makes a Failover use the store at this index of Each, because the content in those before it is wrong.
func Prefer(s Store, place int) {
	if f, ok := s.(*failover); ok {
		f.current.Store((f.current.Load() + int32(place)) % int32(len(f.stores)))
	}
}

// allFailed joins the errors of several stores in one line.
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

// List tries other stores only before the first key, since the rest of their lists may be of another
// time.
func (f *failover) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return f.list(ctx, prefix, listObjects)
}

// Folders does the same with folders.
func (f *failover) Folders(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return f.list(ctx, prefix, ListFolders)
}

func (f *failover) list(ctx context.Context, prefix string, list lister) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		start := int(f.current.Load())
		var errs []error
		for i := range f.stores {
			begun := false
			for info, err := range list(ctx, f.stores[(start+i)%len(f.stores)], prefix) {
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

// Turns reads parts of one immutable object from a store and its mirrors. It switches to the next store when the one in
// use fails, even in the middle of the object. It is safe for concurrent use.
type Turns struct {
	key    string
	stores []Store

	mu      sync.Mutex
	current int
	etags   []string // the object's ETag in each store that was read
}

// NewTurns returns Turns for an object of a store, which may be a Failover.
func NewTurns(s Store, key string) *Turns {
	stores := []Store{s}
	if f, ok := s.(*failover); ok {
		stores = f.stores
	}
	return &Turns{key: key, stores: stores, etags: make([]string, len(stores))}
}

// Key returns the object's key.
func (t *Turns) Key() string { return t.key }

// Stores returns the number of stores.
func (t *Turns) Stores() int { return len(t.stores) }

// At returns store number i, for callers that try all of them.
func (t *Turns) At(i int) Store { return t.stores[i] }

// Open opens a part in the present store, of the version that was read there before. at is the number of the store, for
// Failed.
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

// Failed reports that a store failed, so that the next one is used. If several readers report the same failure, the
// store changes once. If the object was replaced in the meantime, its present version is read: its digest decides
// whether it is the right one.
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
