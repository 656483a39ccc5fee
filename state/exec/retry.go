package exec

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// plan is a step's retry argument, with Salt's defaults.
type plan struct {
	until    bool
	attempts int
	interval time.Duration
	splay    time.Duration
}

// planOf reads the retry argument. A value of the wrong type is replaced by the default, as in Salt.
func planOf(v any) plan {
	p := plan{until: true, attempts: 2, interval: 30 * time.Second}
	m, _ := v.(*value.Map)
	if b, ok := m.Value("until").(bool); ok {
		p.until = b
	}
	if n, ok := m.Value("attempts").(int); ok {
		p.attempts = n
	}
	if n, ok := m.Value("interval").(int); ok {
		p.interval = time.Duration(n) * time.Second
	}
	if n, ok := m.Value("splay").(int); ok {
		p.splay = time.Duration(n) * time.Second
	}
	return p
}

// retry repeats a step until it has the wanted result, or its attempts are used up. Each attempt is counted in the
// order of the run.
func (w *walk) retry(ctx context.Context, s *compile.Step, r *Result) *Result {
	v, ok := s.Chunk.Get("retry")
	if !ok {
		return r
	}
	p := planOf(v)
	if w.runner.Test {
		r.Comment += fmt.Sprintf("  A run would try it up to %d times, every %s, until its result is %t.", p.attempts,
			p.interval, p.until)
		return r
	}
	for attempt := 1; attempt < p.attempts && r.Outcome.Value() != p.until; attempt++ {
		if !wait(ctx, p.interval+splay(p.splay)) {
			return r
		}
		before := r
		r = w.numbered(w.runner.attempt(ctx, try{step: s}))
		r.Comment = fmt.Sprintf("attempt %d: %s\n%s", attempt, before.Comment, r.Comment)
		r.Started, r.Duration = before.Started, time.Since(before.Started)
	}
	return r
}

func splay(most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	return rand.N(most)
}

// wait reports whether the time passed before ctx was done.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
