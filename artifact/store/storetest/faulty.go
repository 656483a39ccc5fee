package storetest

import (
	"context"
	"io"
	"iter"
	"sync"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// Fault is something that goes wrong with requests to a Faulty store. What a request meets is the
// first fault that fits it; a fault does one thing, in the order of the fields.
type Fault struct {
	Op   store.Op // which operation; empty means any
	Key  string   // which key, or a List's prefix; empty means any
	Nth  int      // only the nth request that fits, counted from 1; 0 means every one
	Last int      // with Nth: up to this one; 0 means the nth alone

	Delay time.Duration // before anything else happens
	Hang  bool          // no answer until the context ends
	Lost  bool          // it is done, and then fails with Err, as when an answer gets lost
	Cut   int64         // a Get's body ends after so many bytes, with Err, or silently without one
	Stall int64         // a Get's body gives so many bytes and then stands still
	Drip  time.Duration // a Get's body gives a byte at a time, so far apart
	Err   error         // nothing is done and this returned; with Lost or Cut see there
}

// Faulty is a store that fails on command.
type Faulty struct {
	inner  store.Store
	mu     sync.Mutex
	faults []Fault
	met    []int // how many requests fitted each fault
}

// NewFaulty makes a store that meets the faults and otherwise does as the one inside.
func NewFaulty(inner store.Store, faults ...Fault) *Faulty {
	return &Faulty{inner: inner, faults: faults, met: make([]int, len(faults))}
}

// meet counts a request and returns the fault for it; the zero Fault is none.
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

// before does what a fault does before the request, and says whether that was all.
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

// List yields the objects under a prefix; with Cut it breaks off after so many.
func (f *Faulty) List(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		fault := f.meet(store.OpList, prefix)
		if err := fault.before(ctx); err != nil {
			yield(store.Info{}, err)
			return
		}
		left := fault.Cut
		for info, err := range f.inner.List(ctx, prefix) {
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

// end is what comes after the last byte that the fault lets through.
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
