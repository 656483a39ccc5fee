package aws_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const (
	manyEnvironments = 50
	requestTime      = 50 * time.Millisecond
)

// TestManyEnvironmentsTakeNoLongerThanTheirRequests checks that 50 environments with nothing to change take at most 1.2
// times as long as a client that only sends the same requests, 8 at once, and at most a fifth of a serial run. A
// request takes 50 milliseconds of a fake clock, on which computing takes no time.
func TestManyEnvironmentsTakeNoLongerThanTheirRequests(t *testing.T) {
	a := newExampleAccount(t)
	pageItems = 100
	defer func() { pageItems = 2 }()
	tree, sls := environments(t, manyEnvironments)
	synctest.Test(t, func(t *testing.T) {
		expectChanges(t, treeRunner{tree, 8}.run(context.Background(), t, a.cloud(), false, sls...))
		a.count()
		a.latency, a.mostWaiting = requestTime, 0
		defer func() { a.latency = 0 }()
		parallel := duration(func() {
			expectNoChanges(t, treeRunner{tree, 8}.run(context.Background(), t, a.cloud(), false, sls...), 10*manyEnvironments)
		})
		requests := a.count()
		serial := duration(func() {
			expectNoChanges(t, treeRunner{tree, 1}.run(context.Background(), t, a.cloud(), false, sls...), 10*manyEnvironments)
		})
		bare := duration(func() { a.sendBare(requests, 8) })
		took := fmt.Sprintf("%d requests, at most %d at once: parallel %v, serial %v, bare %v", requests, a.mostWaiting,
			parallel, serial, bare)
		t.Log(took)
		if float64(parallel) > 1.2*float64(bare) || parallel > serial/5 || requests > 3*10*manyEnvironments ||
			a.mostWaiting > 8 {
			t.Error(took)
		}
	})
}

func duration(do func()) time.Duration {
	began := time.Now()
	do()
	return time.Since(began)
}

// sendBare sends a number of requests, up to atOnce at a time, and does nothing else.
func (i *imitation) sendBare(requests, atOnce int) {
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

// BenchmarkManyEnvironments compares 50 environments with nothing to change with a client that only sends their
// requests. Its times are those of the machine's clock.
func BenchmarkManyEnvironments(b *testing.B) {
	a := newExampleAccount(b)
	pageItems = 100
	defer func() { pageItems = 2 }()
	tree, sls := environments(b, manyEnvironments)
	expectChanges(b, treeRunner{tree, 8}.run(context.Background(), b, a.cloud(), false, sls...))
	a.latency = requestTime
	a.count()
	var times []float64
	for b.Loop() {
		parallel := duration(func() {
			expectNoChanges(b, treeRunner{tree, 8}.run(context.Background(), b, a.cloud(), false, sls...), 10*manyEnvironments)
		})
		requests := a.count()
		bare := duration(func() { a.sendBare(requests, 8) })
		a.count()
		times = append(times, parallel.Seconds()/bare.Seconds())
		b.ReportMetric(float64(requests), "requests")
		b.ReportMetric(bare.Seconds(), "s/bare")
	}
	slices.Sort(times)
	b.ReportMetric(times[len(times)/2], "times-bare")
}
