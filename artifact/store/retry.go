package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"math/rand/v2"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// RetryPolicy configures Retry. Zero values mean the defaults.
type RetryPolicy struct {
	Attempts int           // attempts in a row without progress before giving up; 0 means as many as Total allows
	First    time.Duration // longest wait after the first failure, doubled after each; default 250 ms
	Longest  time.Duration // upper limit of a wait; default 8 s
	// Total is the time from the first failure in a row to the last attempt; default 1 minute. The time for which a store
	// did not answer before that failure is a part of it.
	Total time.Duration
	// Waiting is called before each wait with its reason; it may be nil. Several goroutines may call it.
	Waiting func(err error, delay time.Duration)
	// Slow is called once for each request that has no answer after SlowAfter, such as "reading x"; it may be nil. Several
	// goroutines may call it.
	Slow func(request string)
}

// SlowAfter is how long a request may be without an answer before RetryPolicy.Slow is called.
const SlowAfter = 4 * time.Second

// watch calls Slow for a request unless it is stopped before.
func (p RetryPolicy) watch(request, key string) (stop func() bool) {
	if p.Slow == nil {
		return func() bool { return true }
	}
	return time.AfterFunc(SlowAfter, func() { p.Slow(request + " " + key) }).Stop
}

func (p RetryPolicy) orDefaults() RetryPolicy {
	p.First = cmp.Or(p.First, 250*time.Millisecond)
	p.Longest = cmp.Or(p.Longest, 8*time.Second)
	p.Total = cmp.Or(p.Total, time.Minute)
	return p
}

// Retry repeats requests that failed temporarily, after a random wait whose limit doubles (full jitter, so that a
// thousand hosts that failed together do not retry together), or after the time in the store's Retry-After. A body that
// breaks off is continued at the byte it had reached, if the object still has the same version. If the response to a
// conditional Put was lost, the object is read to find out whether the Put succeeded, see Put.
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
	defer p.watch("reading", key)()
	for {
		body, info, err := GetRange(p.within(ctx), r.inner, key, part)
		if err == nil {
			return &resuming{ctx: ctx, inner: r.inner, patience: p, body: body, info: info, part: part}, info, nil
		}
		if err = p.wait(ctx, err); err != nil {
			return nil, Info{}, err
		}
	}
}

// List starts again after a failure and skips the keys that it has yielded, since keys are ordered.
func (r *retrying) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return r.list(ctx, prefix, listObjects)
}

// Folders does the same with folders.
func (r *retrying) Folders(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return r.list(ctx, prefix, ListFolders)
}

func (r *retrying) list(ctx context.Context, prefix string, list lister) iter.Seq2[Info, error] {
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
			err := each(list(p.within(ctx), r.inner, prefix), fresh)
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

// each calls do for each element of a listing until do returns false. It returns the error of the listing.
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
	defer p.watch("removing", key)()
	for {
		err := r.inner.Delete(p.within(ctx), key)
		if err == nil {
			return nil
		}
		if err = p.wait(ctx, err); err != nil {
			return err
		}
	}
}

// patience is the remaining retries of one operation.
type patience struct {
	RetryPolicy
	failures int       // in a row, without progress
	since    time.Time // the first of them
	received int64     // bytes of a body since then
}

// leastRate is the number of bytes per second, from the first failure on, with which a body makes progress. A body that
// brings less between its failures, such as one that stalls again after a few bytes, is given up after Total.
const leastRate = 1 << 10

func (r *retrying) patience() *patience { return &patience{RetryPolicy: r.policy} }

func (p *patience) progress() { p.failures, p.received = 0, 0 }

// moves reports whether a body made progress since the first failure.
func (p *patience) moves() bool {
	return p.received > 0 && float64(p.received) >= leastRate*time.Since(p.since).Seconds()
}

// wait waits until the next attempt. It returns err if a retry is pointless.
func (p *patience) wait(ctx context.Context, err error) error {
	if ctx.Err() != nil || !retryable(err) {
		return err
	}
	if p.moves() {
		p.progress()
	}
	if p.failures++; p.failures == 1 {
		p.since, p.received = time.Now().Add(-stalled(err)), 0
	}
	left := p.left()
	if left <= 0 || p.failures == p.Attempts || after(err) > left {
		return fmt.Errorf("%w (gave up after %s)", err, diag.Count(p.failures, "try"))
	}
	delay := min(p.delay(err), left) // the last attempt is at the end of the total time
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

// left returns the time that is left for retries.
func (p *patience) left() time.Duration { return p.Total - time.Since(p.since) }

type leftKey struct{}

// within returns a context in which Timeout gives a request that is retried no more than the time that is left.
func (p *patience) within(ctx context.Context) context.Context {
	if p.failures == 0 {
		return ctx
	}
	return context.WithValue(ctx, leftKey{}, p.left())
}

// leftOf returns the time that a request has for its response by the time that is left for retries; a very long
// time for a request that is not retried.
func leftOf(ctx context.Context) time.Duration {
	if left, ok := ctx.Value(leftKey{}).(time.Duration); ok {
		return max(left, leastAnswer)
	}
	return math.MaxInt64
}

// stalled returns for how long the store did not answer before a Timeout ended the request.
func stalled(err error) time.Duration {
	var e *Error
	if errors.As(err, &e) {
		return e.Stalled
	}
	return 0
}

// after returns how long the store asked to wait.
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
	return after(err) + rand.N(ceiling+1) // never before Retry-After, and not all hosts at the same time
}
