package stores

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Pace limits how long a file may take to arrive. A server that sends one byte per second is never idle for long, and
// could otherwise hold the host's lock forever. The zero value limits nothing.
type Pace struct {
	Longest time.Duration // until the last byte has arrived
	Slowest int64         // least number of bytes per second in each window
	Window  time.Duration // 0 means a minute
}

// tooSlow is the error for a file that exceeds a limit.
type tooSlow struct{ text, setting string }

func (e *tooSlow) Error() string { return e.text }

// Passing reports that a later run may succeed, as store.Error does.
func (e *tooSlow) Passing() bool { return true }

// Hint returns how to allow more time.
func (e *tooSlow) Hint() string {
	return diag.Timeout.Coded("see why the server is so slow, or change " + e.setting + " in agent.yaml")
}

// keep opens a file with the limits of the pace. Time that the caller spends between two reads counts for Longest only.
func (p Pace) keep(ctx context.Context, shown string,
	open func(context.Context) (io.ReadCloser, error)) (io.ReadCloser, error) {
	cancel := context.CancelFunc(func() {})
	if p.Longest > 0 {
		late := &tooSlow{fmt.Sprintf("%s did not arrive within fetch.timeout (%v)", shown, p.Longest), "fetch.timeout"}
		ctx, cancel = context.WithTimeoutCause(ctx, p.Longest, late)
	}
	body, err := open(ctx)
	if err != nil {
		defer cancel()
		return nil, explained(ctx, err)
	}
	return &paced{ReadCloser: body, pace: p, ctx: ctx, cancel: cancel, shown: shown}, nil
}

// explained replaces the error of a request by the exceeded limit that ended it.
func explained(ctx context.Context, err error) error {
	var late *tooSlow
	if errors.As(context.Cause(ctx), &late) && !errors.Is(err, io.EOF) {
		return late
	}
	return err
}

// paced is a body with a Pace.
type paced struct {
	io.ReadCloser
	pace   Pace
	ctx    context.Context
	cancel context.CancelFunc
	shown  string

	bytes int64         // read in this window
	took  time.Duration // time that reading them took
}

func (b *paced) Read(data []byte) (int, error) {
	start := time.Now()
	n, err := b.ReadCloser.Read(data)
	b.bytes, b.took = b.bytes+int64(n), b.took+time.Since(start)
	if err != nil {
		return n, explained(b.ctx, err)
	}
	return n, b.crawls()
}

// crawls returns an error for a body that was too slow in a window.
func (b *paced) crawls() error {
	if b.took < cmp.Or(b.pace.Window, time.Minute) {
		return nil
	}
	rate, took := float64(b.bytes)/b.took.Seconds(), b.took
	b.bytes, b.took = 0, 0
	if rate >= float64(b.pace.Slowest) {
		return nil
	}
	return &tooSlow{fmt.Sprintf("%s brought %.0f bytes a second for %v, and fetch.slowest asks for %d", b.shown, rate,
		took.Round(time.Millisecond), b.pace.Slowest), "fetch.slowest"}
}

func (b *paced) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}
