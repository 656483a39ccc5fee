package storetest

import (
	"context"
	"io"
	"iter"
	"sync"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// Fault is a fault in requests to a Faulty store. The first fault that matches a request applies. A fault has one
// effect: the first one set, in the order of the fields.
type Fault struct {
	Op   store.Op // operation; empty means any
	Key  string   // key, or a List's prefix; empty means any
	Nth  int      // only the nth matching request, counted from 1; 0 means every one
	Last int      // with Nth: the last matching request; 0 means only the nth

	Delay time.Duration // before the request
	Hang  bool          // no answer until the context ends
	Lost  bool          // the request is done, and then fails with Err, like one whose response was lost
	Cut   int64         // a Get's body ends after so many bytes, with Err, or silently without one
	Stall int64         // a Get's body stalls after so many bytes
	Drip  time.Duration // a Get's body returns one byte at a time, at this interval
	Err   error         // returned without a request; with Lost or Cut see there
}

// Faulty is a store that fails on request.
type Faulty struct {
	inner  store.Store
	mu     sync.Mutex
	faults []Fault
	met    []int // number of requests that matched each fault
}

// NewFaulty returns a store with the faults, which otherwise behaves like inner.
func NewFaulty(inner store.Store, faults ...Fault) *Faulty {
	return &Faulty{inner: inner, faults: faults, met: make([]int, len(faults))}
}

// meet counts a request and returns the fault for it, or the zero Fault.
func (f *Faulty) meet(op store.Op, key string) Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := Fault{}
	for i, fault := range f.faults {
		if fault.Op != "" && fault.Op != op || fault.Key != "" && fault.Key != key {
			continue
		}
		f.met[i]++
		if found == (Fault{}) && (fault.Nth == 0 || f.met[i] >= fault.Nth && f.met[i] <= max(fault.Nth, fault.Last)) {
			found = fault
		}
	}
	return found
}

// before applies the part of a fault that precedes the request. It returns an error if the request is not to be made.
func (f Fault) before(ctx context.Context) error {
	if f.Delay > 0 {
		select {
		case <-time.After(f.Delay):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if f.Hang {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	if f.Lost || f.Cut > 0 {
		return nil
	}
	return f.Err
}

// Get opens an object from an offset on.
func (f *Faulty) Get(ctx context.Context, key string, from int64) (io.ReadCloser, store.Info, error) {
	return f.GetRange(ctx, key, store.Range{From: from})
}

// GetRange opens a part of an object.
func (f *Faulty) GetRange(ctx context.Context, key string, part store.Range) (io.ReadCloser, store.Info, error) {
	fault := f.meet(store.OpGet, key)
	if err := fault.before(ctx); err != nil {
		return nil, store.Info{}, err
	}
	body, info, err := store.GetRange(ctx, f.inner, key, part)
	if err != nil {
		return nil, store.Info{}, err
	}
	return &faultyBody{ctx: ctx, inner: body, fault: fault}, info, nil
}

// Put writes an object.
func (f *Faulty) Put(ctx context.Context, key string, r io.Reader, size int64, cond store.Condition) (store.Info,
	error) {
	fault := f.meet(store.OpPut, key)
	if err := fault.before(ctx); err != nil {
		return store.Info{}, err
	}
	info, err := f.inner.Put(ctx, key, r, size, cond)
	if fault.Lost {
		return store.Info{}, fault.Err
	}
	return info, err
}

// List yields the objects under a prefix; with Cut it ends after so many.
func (f *Faulty) List(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	return f.list(ctx, prefix, f.inner.List)
}

// Folders yields the folders below a prefix, as List does objects.
func (f *Faulty) Folders(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	return f.list(ctx, prefix, func(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
		return store.ListFolders(ctx, f.inner, prefix)
	})
}

func (f *Faulty) list(ctx context.Context, prefix string,
	inner func(context.Context, string) iter.Seq2[store.Info, error]) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		fault := f.meet(store.OpList, prefix)
		if err := fault.before(ctx); err != nil {
			yield(store.Info{}, err)
			return
		}
		left := fault.Cut
		for info, err := range inner(ctx, prefix) {
			if fault.Cut > 0 && left == 0 {
				yield(store.Info{}, fault.Err)
				return
			}
			if left--; !yield(info, err) {
				return
			}
		}
	}
}

// Delete removes an object.
func (f *Faulty) Delete(ctx context.Context, key string) error {
	fault := f.meet(store.OpDelete, key)
	if err := fault.before(ctx); err != nil {
		return err
	}
	err := f.inner.Delete(ctx, key)
	if fault.Lost {
		return fault.Err
	}
	return err
}

type faultyBody struct {
	ctx   context.Context
	inner io.ReadCloser
	fault Fault
	done  int64
}

func (b *faultyBody) Read(p []byte) (int, error) {
	limit := int64(len(p))
	for _, end := range []int64{b.fault.Cut, b.fault.Stall} {
		if end > 0 {
			limit = min(limit, end-b.done)
		}
	}
	if limit == 0 && len(p) > 0 {
		return 0, b.end()
	}
	if b.fault.Drip > 0 {
		limit = min(limit, 1)
		select {
		case <-time.After(b.fault.Drip):
		case <-b.ctx.Done():
			return 0, context.Cause(b.ctx)
		}
	}
	n, err := b.inner.Read(p[:limit])
	b.done += int64(n)
	return n, err
}

// end returns the error after the last byte of a body.
func (b *faultyBody) end() error {
	if b.fault.Stall > 0 {
		<-b.ctx.Done()
		return context.Cause(b.ctx)
	}
	if b.fault.Err != nil {
		return b.fault.Err
	}
	return io.EOF
}

// Close closes the body inside.
func (b *faultyBody) Close() error { return b.inner.Close() }
