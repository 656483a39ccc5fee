package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"time"
)

// RetryPolicy says how long Retry goes on. The zero value means the defaults.
type RetryPolicy struct {
	Attempts int           // tries in a row without progress before giving up; 0 means as many as Total allows
	First    time.Duration // longest wait after the first failure, doubled after each; default 250 ms
	Longest  time.Duration // upper bound of a wait; default 8 s
	Total    time.Duration // from the first failure in a row to the last try; default 1 minute
	// Waiting hears why the next wait is necessary; may be nil. Several goroutines may call it.
	Waiting func(err error, delay time.Duration)
}

func (p RetryPolicy) orDefaults() RetryPolicy {
	p.First = cmp.Or(p.First, 250*time.Millisecond)
	p.Longest = cmp.Or(p.Longest, 8*time.Second)
	p.Total = cmp.Or(p.Total, time.Minute)
	return p
}

// Retry repeats what failed for a passing reason, after a random wait that doubles (full jitter:
// a thousand hosts that failed together do not come back together), or after as long as the store
// asks for. A body that breaks off goes on from the byte it had reached, and only while the object
// is still the same version. A conditional Put whose answer got lost is settled by reading what
// was written, see Put.
func Retry(s Store, policy RetryPolicy) Store { return &retrying{s, policy.orDefaults()} }

type retrying struct {
	inner  Store
	policy RetryPolicy
}

func (r *retrying) Get(ctx context.Context, key string, from int64) (io.ReadCloser, Info, error) {
	return r.GetRange(ctx, key, Range{From: from})
}

func (r *retrying) GetRange(ctx context.Context, key string, part Range) (io.ReadCloser, Info, error) {
	p := r.patience()
	for {
		body, info, err := GetRange(ctx, r.inner, key, part)
		if err == nil {
			return &resuming{ctx: ctx, inner: r.inner, patience: p, body: body, info: info, part: part}, info, nil
		}
		if err = p.wait(ctx, err); err != nil {
			return nil, Info{}, err
		}
	}
}

// List starts again after a failure and leaves out what it has yielded, which key order allows.
func (r *retrying) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		p, last := r.patience(), ""
		fresh := func(info Info) bool {
			if info.Key <= last {
				return true
			}
			p.progress()
			last = info.Key
			return yield(info, nil)
		}
		for {
			err := each(r.inner.List(ctx, prefix), fresh)
			if err == nil {
				return
			}
			if err = p.wait(ctx, err); err != nil {
				yield(Info{}, err)
				return
			}
		}
	}
}

// each calls do for what a listing yields, until it says no, and returns what the listing fails with.
func each(listing iter.Seq2[Info, error], do func(Info) bool) error {
	for info, err := range listing {
		if err != nil {
			return err
		}
		if !do(info) {
			return nil
		}
	}
	return nil
}

func (r *retrying) Delete(ctx context.Context, key string) error {
	p := r.patience()
	for {
		err := r.inner.Delete(ctx, key)
		if err == nil {
			return nil
		}
		if err = p.wait(ctx, err); err != nil {
			return err
		}
	}
}

// patience is what one operation has left.
type patience struct {
	RetryPolicy
	failures int       // in a row, without progress
	since    time.Time // the first of them
}

func (r *retrying) patience() *patience { return &patience{RetryPolicy: r.policy} }

func (p *patience) progress() { p.failures = 0 }

// wait sleeps until the next try. It returns err where there is no point in one.
func (p *patience) wait(ctx context.Context, err error) error {
	if ctx.Err() != nil || !retryable(err) {
		return err
	}
	if p.failures++; p.failures == 1 {
		p.since = time.Now()
	}
	left := p.Total - time.Since(p.since)
	if left <= 0 || p.failures == p.Attempts || after(err) > left {
		return fmt.Errorf("%w (gave up after %d tries)", err, p.failures)
	}
	delay := min(p.delay(err), left) // the last try is at the very end of the time
	if p.Waiting != nil {
		p.Waiting(err, delay)
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w while waiting to try again: %w", context.Cause(ctx), err)
	}
}

// after is how long the store asked to wait.
func after(err error) time.Duration {
	var e *Error
	if errors.As(err, &e) {
		return e.After
	}
	return 0
}

func (p *patience) delay(err error) time.Duration {
	ceiling := p.Longest
	if shift := p.failures - 1; shift < 30 && p.First<<shift < ceiling {
		ceiling = p.First << shift
	}
	return after(err) + rand.N(ceiling+1) // never before what was asked for, and not all at once then
}
