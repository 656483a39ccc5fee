// Package mem keeps objects in memory, for tests. It is the simplest store, and the best
// one to read first.
package mem

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// Store is a store in memory. The zero Store is empty and ready.
type Store struct {
	mu      sync.Mutex
	objects map[string]object
	puts    int // counts writes, to make ETags
}

type object struct {
	data []byte // never changed
	info store.Info
}

// New returns an empty store.
func New() *Store { return &Store{} }

// Get opens an object from an offset on.
func (s *Store) Get(ctx context.Context, key string, from int64) (io.ReadCloser, store.Info, error) {
	return s.GetRange(ctx, key, store.Range{From: from})
}

// GetRange opens a part of an object.
func (s *Store) GetRange(ctx context.Context, key string, part store.Range) (io.ReadCloser, store.Info, error) {
	if err := check(ctx, store.OpGet, key); err != nil {
		return nil, store.Info{}, err
	}
	s.mu.Lock()
	o, ok := s.objects[key]
	s.mu.Unlock()
	if !ok {
		return nil, store.Info{}, failed(store.OpGet, key, store.ErrNotFound)
	}
	if err := part.Outdated(o.info.ETag); err != nil {
		return nil, store.Info{}, failed(store.OpGet, key, err)
	}
	data := o.data[min(part.From, o.info.Size):]
	if part.Length > 0 {
		data = data[:min(part.Length, int64(len(data)))]
	}
	return &reader{ctx, key, bytes.NewReader(data)}, o.info, nil
}

// reader fails when its context ends, like one from a network.
type reader struct {
	ctx  context.Context
	key  string
	data *bytes.Reader
}

func (r *reader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, store.Stopped(r.ctx, store.OpGet, r.key)
	}
	return r.data.Read(p)
}

func (r *reader) Close() error { return nil }

// Put writes an object.
func (s *Store) Put(ctx context.Context, key string, r io.Reader,
	size int64, cond store.Condition) (store.Info, error) {
	if err := check(ctx, store.OpPut, key); err != nil {
		return store.Info{}, err
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return store.Info{}, fmt.Errorf("writing %s: %w", key, err)
	}
	if int64(len(data)) != size {
		return store.Info{}, fmt.Errorf("writing %s: the source has %d bytes, not the announced %d", key, len(data), size)
	}
	if ctx.Err() != nil {
		return store.Info{}, store.Stopped(ctx, store.OpPut, key)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old, ok := s.objects[key]
	if cond.IfAbsent && ok || cond.IfMatch != "" && cond.IfMatch != old.info.ETag {
		return store.Info{}, failed(store.OpPut, key, store.ErrPrecondition)
	}
	s.puts++
	info := store.Info{Key: key, Size: size, ETag: strconv.Itoa(s.puts), Modified: time.Now()}
	if s.objects == nil {
		s.objects = map[string]object{}
	}
	s.objects[key] = object{data, info}
	return info, nil
}

// List yields the objects that exist when it begins.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		s.mu.Lock()
		objects := maps.Clone(s.objects)
		s.mu.Unlock()
		for _, key := range slices.Sorted(maps.Keys(objects)) {
			if !strings.HasPrefix(key, prefix) {
				continue
			}
			if ctx.Err() != nil {
				yield(store.Info{}, store.Stopped(ctx, store.OpList, prefix))
				return
			}
			if !yield(objects[key].info, nil) {
				return
			}
		}
	}
}

// Delete removes an object.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := check(ctx, store.OpDelete, key); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, key)
	return nil
}

func check(ctx context.Context, op store.Op, key string) error {
	if ctx.Err() != nil {
		return store.Stopped(ctx, op, key)
	}
	return store.CheckKey(key)
}

func failed(op store.Op, key string, kind error) error {
	return &store.Error{Op: op, Object: key, Kind: kind}
}
