package store

import (
	"context"
	"io"
	"iter"
	"time"
)

// Request is one finished request to a store.
type Request struct {
	Op    Op
	Key   string // a List's prefix
	Range Range  // the range of a Get
	Bytes int64  // bytes of the body that were transferred
	Took  time.Duration
	Err   error // nil on success
}

// Observe calls seen for every finished request; a Get is finished when its body is closed. Seen is called from many
// goroutines and must not block.
func Observe(s Store, seen func(Request)) Store { return &observed{s, seen} }

type observed struct {
	inner Store
	seen  func(Request)
}

func (o *observed) Get(ctx context.Context, key string, from int64) (io.ReadCloser, Info, error) {
	return o.GetRange(ctx, key, Range{From: from})
}

func (o *observed) GetRange(ctx context.Context, key string, part Range) (io.ReadCloser, Info, error) {
	body := &countedBody{start: time.Now(), seen: o.seen, request: Request{Op: OpGet, Key: key, Range: part}}
	inner, info, err := GetRange(ctx, o.inner, key, part)
	if err != nil {
		body.request.Err = err
		body.tell()
		return nil, Info{}, err
	}
	body.inner = inner
	return body, info, nil
}

func (o *observed) Put(ctx context.Context, key string, r io.Reader, size int64, cond Condition) (Info, error) {
	start, counted := time.Now(), &countedReader{r: r}
	info, err := o.inner.Put(ctx, key, counted, size, cond)
	o.seen(Request{Op: OpPut, Key: key, Bytes: counted.n, Took: time.Since(start), Err: err})
	return info, err
}

func (o *observed) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return o.list(ctx, prefix, listObjects)
}

func (o *observed) Folders(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return o.list(ctx, prefix, ListFolders)
}

func (o *observed) list(ctx context.Context, prefix string, list lister) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		request, start := Request{Op: OpList, Key: prefix}, time.Now()
		defer func() {
			request.Took = time.Since(start)
			o.seen(request)
		}()
		for info, err := range list(ctx, o.inner, prefix) {
			request.Err = err
			if !yield(info, err) {
				return
			}
		}
	}
}

func (o *observed) Delete(ctx context.Context, key string) error {
	start := time.Now()
	err := o.inner.Delete(ctx, key)
	o.seen(Request{Op: OpDelete, Key: key, Took: time.Since(start), Err: err})
	return err
}

type countedReader struct {
	r io.Reader
	n int64
}

func (c *countedReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

type countedBody struct {
	inner   io.ReadCloser
	request Request
	start   time.Time
	seen    func(Request)
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.inner.Read(p)
	b.request.Bytes += int64(n)
	if err != nil && err != io.EOF {
		b.request.Err = err
	}
	return n, err
}

func (b *countedBody) Close() error {
	err := b.inner.Close()
	b.tell()
	return err
}

// tell calls seen once, however often the body is closed.
func (b *countedBody) tell() {
	if b.seen != nil {
		b.request.Took = time.Since(b.start)
		b.seen(b.request)
		b.seen = nil
	}
}
