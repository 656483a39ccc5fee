package store

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"

	"golang.org/x/time/rate"
)

// NewLimiter allows so many bytes per second; 0 means no limit, which is a nil limiter. Several stores may share a
// limiter, so that the limit applies to a whole run, or to a host, regardless of the number of mirrors.
func NewLimiter(bytesPerSecond int64) *rate.Limiter {
	const smooth = 64 << 10 // bytes that may pass at once
	if bytesPerSecond <= 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(bytesPerSecond), int(min(smooth, bytesPerSecond)))
}

// Limit limits the rate of bodies, in both directions.
func Limit(s Store, limiter *rate.Limiter) Store {
	if limiter == nil {
		return s
	}
	return &slowed{s, limiter}
}

type slowed struct {
	inner   Store
	limiter *rate.Limiter
}

func (s *slowed) Get(ctx context.Context, key string, from int64) (io.ReadCloser, Info, error) {
	return s.GetRange(ctx, key, Range{From: from})
}

func (s *slowed) GetRange(ctx context.Context, key string, part Range) (io.ReadCloser, Info, error) {
	body, info, err := GetRange(ctx, s.inner, key, part)
	if err != nil {
		return nil, Info{}, err
	}
	return limited{&slowReader{ctx, body, s.limiter}, body}, info, nil
}

func (s *slowed) Put(ctx context.Context, key string, r io.Reader, size int64, cond Condition) (Info, error) {
	return s.inner.Put(ctx, key, &slowReader{ctx, r, s.limiter}, size, cond)
}

func (s *slowed) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return s.inner.List(ctx, prefix)
}

func (s *slowed) Folders(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return ListFolders(ctx, s.inner, prefix)
}

func (s *slowed) Delete(ctx context.Context, key string) error { return s.inner.Delete(ctx, key) }

type slowReader struct {
	ctx     context.Context
	r       io.Reader
	limiter *rate.Limiter
}

// Read reads first and then waits, so that it need not guess how much will arrive. A wait that would exceed the
// context's deadline fails at once.
func (s *slowReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p[:min(len(p), s.limiter.Burst())])
	if waitErr := s.limiter.WaitN(s.ctx, n); waitErr != nil {
		return n, fmt.Errorf("waiting for the bandwidth limit: %w", cmp.Or(context.Cause(s.ctx), context.DeadlineExceeded))
	}
	return n, err
}
