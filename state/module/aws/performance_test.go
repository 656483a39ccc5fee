package aws_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const (
	manyEnvironments = 50
	oneRequest       = 50 * time.Millisecond
)

// TestManyEnvironmentsTakeNoLongerThanTheirRequests checks that 50 environments with nothing to change take at most 1.2
// times as long as a client that only sends the same requests, 8 at once, and at most a fifth of one by one. A request
// takes 50 milliseconds of a clock that stands still while something computes.
func TestManyEnvironmentsTakeNoLongerThanTheirRequests(t *testing.T) {
	a := newExampleAccount(t)
	pageItems = 100
	defer func() { pageItems = 2 }()
	tree, sls := environments(t, manyEnvironments)
	synctest.Test(t, func(t *testing.T) {
		worked(t, orchestrated{tree, 8}.run(context.Background(), t, a.cloud(), false, sls...))
		a.count()
		a.latency, a.widest = oneRequest, 0
		defer func() { a.latency = 0 }()
		side := took(func() {
			settled(t, orchestrated{tree, 8}.run(context.Background(), t, a.cloud(), false, sls...), 10*manyEnvironments)
		})
		requests := a.count()
		alone := took(func() {
			settled(t, orchestrated{tree, 1}.run(context.Background(), t, a.cloud(), false, sls...), 10*manyEnvironments)
		})
		bare := took(func() { a.replay(requests, 8) })
		t.Logf("%d requests, at most %d at once: side by side %v, bare %v, one by one %v", requests, a.widest, side, bare,
			alone)
		if float64(side) > 1.2*float64(bare) || side > alone/5 || requests > 3*10*manyEnvironments || a.widest > 8 {
			t.Errorf("%d requests, at most %d at once, take %v side by side; bare %v, one by one %v", requests, a.widest, side,
				bare, alone)
		}
	})
}

func took(do func()) time.Duration {
	began := time.Now()
	do()
	return time.Since(began)
}

// replay sends so many requests, as many at once as are given, and does nothing else.
func (i *imitation) replay(requests, atOnce int) {
	var clients sync.WaitGroup
	next := make(chan struct{})
	for range atOnce {
		clients.Go(func() {
			for range next {
				_, _ = i.answer("replayed", nil)
			}
		})
	}
	for range requests {
		next <- struct{}{}
	}
	close(next)
	clients.Wait()
}

// BenchmarkManyEnvironments measures 50 environments with nothing to change, beside a client that only sends their
// requests, by the clock of the machine.
func BenchmarkManyEnvironments(b *testing.B) {
	a := newExampleAccount(b)
	pageItems = 100
	defer func() { pageItems = 2 }()
	tree, sls := environments(b, manyEnvironments)
	worked(b, orchestrated{tree, 8}.run(context.Background(), b, a.cloud(), false, sls...))
	a.latency = oneRequest
	a.count()
	var times []float64
	for b.Loop() {
		side := took(func() {
			settled(b, orchestrated{tree, 8}.run(context.Background(), b, a.cloud(), false, sls...), 10*manyEnvironments)
		})
		requests := a.count()
		bare := took(func() { a.replay(requests, 8) })
		a.count()
		times = append(times, side.Seconds()/bare.Seconds())
		b.ReportMetric(float64(requests), "requests")
		b.ReportMetric(bare.Seconds(), "s/bare")
	}
	slices.Sort(times)
	b.ReportMetric(times[len(times)/2], "times-bare")
}
