package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// TimeoutPolicy configures Timeout. Zero values mean the defaults.
type TimeoutPolicy struct {
	Answer time.Duration // from a request to the start of its response; default 30 s
	Idle   time.Duration // how long a body may stall, in either direction; default 30 s
	// Slowest is the least rate of a body, in bytes per second over 10 seconds, if another store may be faster; 0 for
	// none. Each time that a store is given up for it, the required rate of the store is halved, so that a line
	// that is slow for every store is not given up forever.
	Slowest int64
	AnyRate bool   // a body may be slower than leastRate, since the caller limits its time
	Name    string // name of the store in messages, before a slash and the key; may be empty

	window time.Duration // over which a body brings leastRate, or stalls
}

func (p TimeoutPolicy) orDefaults() TimeoutPolicy {
	p.Answer, p.Idle = cmp.Or(p.Answer, 30*time.Second), cmp.Or(p.Idle, 30*time.Second)
	p.window = cmp.Or(p.window, stallWindow)
	return p
}

// leastAnswer is the time that a request has for its response however little time its retries have.
const leastAnswer = time.Second

// inTotal returns a policy whose requests end within the total time of their retries, so that a store that accepts a
// request and never answers takes no longer than one that refuses it; total is 0 for the default.
func (p TimeoutPolicy) inTotal(total time.Duration) TimeoutPolicy {
	total = max(RetryPolicy{Total: total}.orDefaults().Total, leastAnswer)
	p = p.orDefaults()
	p.Answer, p.Idle, p.window = min(p.Answer, total), min(p.Idle, total), min(p.window, total)
	return p
}

// object returns the name of an object in messages.
func (p TimeoutPolicy) object(key string) string {
	if p.Name == "" {
		return key
	}
	return strings.TrimSuffix(p.Name, "/") + "/" + key
}

// Timeout cancels requests without a response and bodies that stall: those that bring nothing for a while, or less than
// leastRate over stallWindow. Otherwise the caller's context limits the time of a download. Time that the caller spends
// between two reads, or on providing the bytes of a Put, does not count.
func Timeout(s Store, policy TimeoutPolicy) Store {
	t := &timed{inner: s, policy: policy.orDefaults()}
	t.slowest.Store(policy.Slowest)
	return t
}

type timed struct {
	inner   Store
	policy  TimeoutPolicy
	slowest atomic.Int64
}

func (t *timed) Get(ctx context.Context, key string, from int64) (io.ReadCloser, Info, error) {
	return t.GetRange(ctx, key, Range{From: from})
}

func (t *timed) GetRange(ctx context.Context, key string, part Range) (io.ReadCloser, Info, error) {
	left := leftOf(ctx)
	ctx, w := t.watch(ctx, OpGet, key)
	w.arm(min(t.policy.Answer, left))
	body, info, err := GetRange(ctx, t.inner, key, part)
	w.disarm()
	if err != nil {
		w.release()
		return nil, Info{}, w.explain(ctx, err)
	}
	return &timedBody{ctx: ctx, body: body, w: w, t: t, first: left, window: min(t.policy.window, left),
		object: t.policy.object(key)}, info, nil
}

func (t *timed) Put(ctx context.Context, key string, r io.Reader, size int64, cond Condition) (Info, error) {
	ctx, w := t.watch(ctx, OpPut, key)
	defer w.release()
	policy := t.policy
	policy.Answer = min(policy.Answer, leftOf(ctx))
	w.arm(policy.Answer)
	info, err := t.inner.Put(t.moving(ctx, w), key, &timedSource{r, w, policy}, size, cond)
	w.disarm()
	return info, w.explain(ctx, err)
}

func (t *timed) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return t.list(ctx, prefix, listObjects)
}

func (t *timed) Folders(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return t.list(ctx, prefix, ListFolders)
}

func (t *timed) list(ctx context.Context, prefix string, list lister) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		ctx, w := t.watch(ctx, OpList, prefix)
		defer w.release()
		w.arm(min(t.policy.Answer, leftOf(ctx)))
		for info, err := range list(ctx, t.inner, prefix) {
			w.disarm()
			if !yield(info, w.explain(ctx, err)) {
				return
			}
			w.arm(t.policy.Answer)
		}
	}
}

func (t *timed) Delete(ctx context.Context, key string) error {
	ctx, w := t.watch(ctx, OpDelete, key)
	defer w.release()
	w.arm(min(t.policy.Answer, leftOf(ctx)))
	err := t.inner.Delete(t.moving(ctx, w), key)
	return w.explain(ctx, err)
}

type movedKey struct{}

// moving returns a context in which a store extends the limit of a request by Moved.
func (t *timed) moving(ctx context.Context, w *watchdog) context.Context {
	return context.WithValue(ctx, movedKey{}, func(more time.Duration) {
		w.arm(max(t.policy.Idle, t.policy.Answer) +
			more)
	})
}

// Moved returns a function for a store to call when a Put or a Delete makes progress without reading from its source:
// when it sends from memory, queries the server, or waits for a lock. Timeout then waits so much longer for the next
// progress.
func Moved(ctx context.Context) func(more time.Duration) {
	if moved, ok := ctx.Value(movedKey{}).(func(time.Duration)); ok {
		return moved
	}
	return func(time.Duration) {}
}

// timedBody limits the time of each read.
type timedBody struct {
	ctx  context.Context
	body io.ReadCloser
	w    *watchdog
	t    *timed

	first  time.Duration // limit of the time until the first bytes, by the time that is left for retries
	window time.Duration // over which less than leastRate is a stall
	object string
	faster pace // for Slowest
	moving pace // for leastRate
}

// pace is what a body brought since its rate was last checked.
type pace struct {
	bytes int64
	took  time.Duration // time that reading them took
}

// rate returns the bytes per second of a window that is complete, and starts the next one.
func (p *pace) rate(n int, took, window time.Duration) (rate float64, complete bool) {
	p.bytes, p.took = p.bytes+int64(n), p.took+took
	if p.took < window {
		return 0, false
	}
	rate = float64(p.bytes) / p.took.Seconds()
	*p = pace{}
	return rate, true
}

func (b *timedBody) Read(p []byte) (int, error) {
	start := time.Now()
	b.w.arm(min(b.t.policy.Idle, b.first, b.untilStall()))
	n, err := b.body.Read(p)
	b.w.disarm()
	if n > 0 {
		b.first = b.t.policy.Idle
	}
	if errors.Is(err, io.EOF) {
		return n, err
	}
	if slow := b.crawls(n, time.Since(start)); slow != nil && (err == nil || b.w.expired(b.ctx)) {
		return n, slow
	}
	return n, b.w.explain(b.ctx, err)
}

// rateWindow is the time over which the rate of a body is measured for TimeoutPolicy.Slowest.
const rateWindow = 10 * time.Second

// stallWindow is the time over which a body that brings less than leastRate counts as stalled, or the total time for
// retries if that is shorter.
const stallWindow = time.Minute

// untilStall returns for how long a read may take before the window ends with less than leastRate. A window without any
// byte is limited by TimeoutPolicy.Idle.
func (b *timedBody) untilStall() time.Duration {
	if b.t.policy.AnyRate || b.moving.bytes == 0 || float64(b.moving.bytes) >= leastRate*b.window.Seconds() {
		return math.MaxInt64
	}
	return b.window - b.moving.took + time.Second // bytes that arrive right at its end count
}

// crawls returns an error for a body that is too slow: one after which another store is asked, or one after which the
// rest is requested again.
func (b *timedBody) crawls(n int, took time.Duration) error {
	rate, complete := b.moving.rate(n, took, b.window)
	if complete && rate > 0 && rate < leastRate && !b.t.policy.AnyRate {
		err := b.slow(true, "it stalls: it sent %.0f bytes a second for %v", rate, b.window.Round(time.Second))
		return diag.Store.Hint(err, "the store, or the line to it, brings less than %d bytes a second: look at the server, "+
			"and at proxies on the way", leastRate)
	}
	if complete {
		b.window = b.t.policy.window // it brings enough, so the time that was left for retries counts no more
	}
	slowest := b.t.slowest.Load()
	if rate, complete = b.faster.rate(n, took, rateWindow); !complete || rate >= float64(slowest) {
		return nil
	}
	b.t.slowest.CompareAndSwap(slowest, slowest/2)
	return b.slow(false, "it sends %.0f bytes a second, and another store may do better", rate)
}

func (b *timedBody) slow(again bool, cause string, args ...any) error {
	return &Error{Op: OpGet, Object: b.object, Kind: ErrUnreachable, Cause: fmt.Errorf(cause, args...), Again: again}
}

func (b *timedBody) Close() error {
	err := b.body.Close()
	b.w.release()
	return err
}

// timedSource measures the progress of a Put by the reads of its source: each read shows that the bytes read before
// were sent.
type timedSource struct {
	r      io.Reader
	w      *watchdog
	policy TimeoutPolicy
}

func (s *timedSource) Read(p []byte) (int, error) {
	s.w.disarm()
	n, err := s.r.Read(p)
	if err != nil {
		s.w.arm(s.policy.Answer)
	} else {
		s.w.arm(s.policy.Idle)
	}
	return n, err
}

// watchdog cancels a request unless it is disarmed in time.
type watchdog struct {
	cancel context.CancelCauseFunc
	late   *Error

	mu    sync.Mutex
	limit time.Duration // it was armed with
	timer *time.Timer
}

func (t *timed) watch(ctx context.Context, op Op, key string) (context.Context, *watchdog) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &watchdog{cancel: cancel, late: &Error{Op: op, Object: t.policy.object(key), Kind: ErrUnreachable, Again: true}}
	w.timer = time.AfterFunc(time.Hour, w.expire)
	w.timer.Stop()
	return ctx, w
}

// expire cancels the request with an error that names the exceeded limit.
func (w *watchdog) expire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.late.Cause = fmt.Errorf("it stopped answering: nothing came for %v", w.limit.Round(time.Millisecond))
	w.late.Stalled = w.limit
	w.cancel(w.late)
}

func (w *watchdog) arm(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.limit = d
	w.timer.Reset(d)
}

func (w *watchdog) disarm() { w.timer.Stop() }

// release frees the resources of the request's context.
func (w *watchdog) release() {
	w.timer.Stop()
	w.cancel(nil)
}

// expired reports whether the watchdog cancelled the request.
func (w *watchdog) expired(ctx context.Context) bool {
	var late *Error
	return errors.As(context.Cause(ctx), &late) && late == w.late
}

// explain replaces an error that the watchdog caused by the watchdog's own.
func (w *watchdog) explain(ctx context.Context, err error) error {
	var late *Error
	if err != nil && errors.As(context.Cause(ctx), &late) {
		return diag.Store.Hint(late, "the store, or something between here and it such as a proxy or a firewall, accepts "+
			"requests and does not answer: look at the server, and at the host and the port in the store's URL")
	}
	return err
}
