package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// TimeoutPolicy says when Timeout loses patience. The zero value means the defaults.
type TimeoutPolicy struct {
	Answer time.Duration // from a request until its answer begins; default 30 s
	Idle   time.Duration // how long a body may stand still, either way; default 30 s
	// Slowest is how many bytes a second a body has to bring, over 10 seconds, where another store may do
	// better; 0 for none. Each time that a store is given up for it, the store has to bring half as many
	// from then on, so that a line which is slow to every store is not given up for ever.
	Slowest int64
	Name    string // what messages call the store, before a slash and the key; may be empty
}

func (p TimeoutPolicy) orDefaults() TimeoutPolicy {
	return TimeoutPolicy{Answer: cmp.Or(p.Answer, 30*time.Second), Idle: cmp.Or(p.Idle, 30*time.Second), Name: p.Name, Slowest: p.Slowest}
}

// object is how messages call an object.
func (p TimeoutPolicy) object(key string) string {
	if p.Name == "" {
		return key
	}
	return strings.TrimSuffix(p.Name, "/") + "/" + key
}

// Timeout cuts requests that are not answered and bodies that stand still. A body that moves is
// never cut, however slow it is: how long a whole download may take is for the caller's context.
// Time that the caller spends between two reads, or on giving the bytes of a Put, does not count.
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
	ctx, w := t.watch(ctx, OpGet, key)
	w.arm(t.policy.Answer)
	body, info, err := GetRange(ctx, t.inner, key, part)
	w.disarm()
	if err != nil {
		w.release()
		return nil, Info{}, w.explain(ctx, err)
	}
	return &timedBody{ctx: ctx, body: body, w: w, t: t, object: t.policy.object(key)}, info, nil
}

func (t *timed) Put(ctx context.Context, key string, r io.Reader, size int64, cond Condition) (Info, error) {
	ctx, w := t.watch(ctx, OpPut, key)
	defer w.release()
	w.arm(t.policy.Answer)
	info, err := t.inner.Put(t.moving(ctx, w), key, &timedSource{r, w, t.policy}, size, cond)
	w.disarm()
	return info, w.explain(ctx, err)
}

func (t *timed) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		ctx, w := t.watch(ctx, OpList, prefix)
		defer w.release()
		w.arm(t.policy.Answer)
		for info, err := range t.inner.List(ctx, prefix) {
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
	w.arm(t.policy.Answer)
	err := t.inner.Delete(t.moving(ctx, w), key)
	return w.explain(ctx, err)
}

type movedKey struct{}

// moving is a context in which a store extends the limit of a request with Moved.
func (t *timed) moving(ctx context.Context, w *watchdog) context.Context {
	return context.WithValue(ctx, movedKey{}, func(more time.Duration) { w.arm(max(t.policy.Idle, t.policy.Answer) + more) })
}

// Moved gives what a store calls when a Put or a Delete moves without reading from a source: when it sends from
// memory, asks the server something, or waits for a lock. Timeout goes by it, and waits so much longer for the next move.
func Moved(ctx context.Context) func(more time.Duration) {
	if moved, ok := ctx.Value(movedKey{}).(func(time.Duration)); ok {
		return moved
	}
	return func(time.Duration) {}
}

// timedBody lets each read take no longer than idle.
type timedBody struct {
	ctx  context.Context
	body io.ReadCloser
	w    *watchdog
	t    *timed

	object string
	bytes  int64         // since the last look at the rate
	took   time.Duration // that reading them took
}

func (b *timedBody) Read(p []byte) (int, error) {
	start := time.Now()
	b.w.arm(b.t.policy.Idle)
	n, err := b.body.Read(p)
	b.w.disarm()
	if err == nil {
		err = b.crawls(n, time.Since(start))
	}
	if errors.Is(err, io.EOF) {
		return n, err
	}
	return n, b.w.explain(b.ctx, err)
}

// rateWindow is over how long the rate of a body is measured.
const rateWindow = 10 * time.Second

// crawls gives up a body that brings too little.
func (b *timedBody) crawls(n int, took time.Duration) error {
	b.bytes, b.took = b.bytes+int64(n), b.took+took
	if b.took < rateWindow {
		return nil
	}
	rate, slowest := float64(b.bytes)/b.took.Seconds(), b.t.slowest.Load()
	b.bytes, b.took = 0, 0
	if rate >= float64(slowest) {
		return nil
	}
	b.t.slowest.CompareAndSwap(slowest, slowest/2)
	return &Error{Op: OpGet, Object: b.object, Kind: ErrUnreachable, Cause: fmt.Errorf("it sends %.0f bytes a second, and another store may do better", rate)}
}

func (b *timedBody) Close() error {
	err := b.body.Close()
	b.w.release()
	return err
}

// timedSource measures a Put by how the store comes for more: each read of the source shows that
// what was read before has gone out.
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

// watchdog cancels a request when it is not disarmed in time.
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

// expire cancels the request, and says which limit it exceeded.
func (w *watchdog) expire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.late.Cause = fmt.Errorf("it stopped answering: nothing came for %v", w.limit)
	w.cancel(w.late)
}

func (w *watchdog) arm(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.limit = d
	w.timer.Reset(d)
}

func (w *watchdog) disarm() { w.timer.Stop() }

// release frees what the request's context holds.
func (w *watchdog) release() {
	w.timer.Stop()
	w.cancel(nil)
}

// explain puts the watchdog's reason in place of whatever failed because of it.
func (w *watchdog) explain(ctx context.Context, err error) error {
	var late *Error
	if err != nil && errors.As(context.Cause(ctx), &late) {
		return late
	}
	return err
}
