package rollout

import (
	"slices"
	"time"
)

// Tally has the results of hosts in a rollout, each with the time at which the store received it. The times are needed
// because a reader may see results late or not at all: the results that count at a time are those that the store had by
// then.
type Tally struct {
	healthy [][]time.Time // by wave, ascending
	failed  []time.Time   // ascending
	halted  []time.Time   // recorded halts, ascending
}

// Result is the result of one host.
type Result struct {
	Host   string
	Wave   int
	Failed bool // or rolled back
	At     time.Time
}

// NewTally counts results, each host once: a failure takes precedence, and then the earliest result.
func NewTally(waves int, results []Result, halted []time.Time) *Tally {
	t := &Tally{healthy: make([][]time.Time, waves), halted: slices.SortedFunc(slices.Values(halted), time.Time.Compare)}
	byHost := map[string]Result{}
	for _, r := range results {
		known, ok := byHost[r.Host]
		if !ok || r.Failed && !known.Failed || r.Failed == known.Failed && r.At.Before(known.At) {
			byHost[r.Host] = r
		}
	}
	for _, r := range byHost {
		if r.Wave < 0 || r.Wave >= waves {
			continue
		}
		if r.Failed {
			t.failed = append(t.failed, r.At)
		} else {
			t.healthy[r.Wave] = append(t.healthy[r.Wave], r.At)
		}
	}
	for _, list := range append(t.healthy, t.failed) {
		slices.SortFunc(list, time.Time.Compare)
	}
	return t
}

// Add counts the result of one more host, which must be the newest.
func (t *Tally) Add(r Result) {
	if r.Failed {
		t.failed = append(t.failed, r.At)
	} else {
		t.healthy[r.Wave] = append(t.healthy[r.Wave], r.At)
	}
}

// AddHalt counts a recorded halt, which must be the newest.
func (t *Tally) AddHalt(at time.Time) { t.halted = append(t.halted, at) }

// upTo returns the number of the ascending times that are not after until.
func upTo(times []time.Time, until time.Time) int {
	n, _ := slices.BinarySearchFunc(times, until, func(a, b time.Time) int {
		if a.After(b) {
			return 1
		}
		return -1
	})
	return n
}

// View is a tally as of a time.
type View struct {
	tally *Tally
	until time.Time
}

// AsOf returns the results that the store had at a time.
func (t *Tally) AsOf(until time.Time) View { return View{t, until} }

// nthHealthy returns the time at which the nth host of a wave, counted from 1, was healthy.
func (v View) nthHealthy(wave, n int) (time.Time, bool) {
	if n > v.Healthy(wave) {
		return time.Time{}, false
	}
	return v.tally.healthy[wave][n-1], true
}

// waves returns the number of waves.
func (v View) waves() int { return len(v.tally.healthy) }

// Healthy returns the number of healthy hosts of a wave.
func (v View) Healthy(wave int) int { return upTo(v.tally.healthy[wave], v.until) }

// failedSince returns the number of hosts that failed after a time.
func (v View) failedSince(since time.Time) int {
	return upTo(v.tally.failed, v.until) - upTo(v.tally.failed, since)
}

// finished returns the number of hosts that are healthy, or failed after a time.
func (v View) finished(since time.Time) int {
	n := v.failedSince(since)
	for wave := range v.tally.healthy {
		n += v.Healthy(wave)
	}
	return n
}

// haltedSince reports whether a halt was recorded after a time.
func (v View) haltedSince(since time.Time) bool {
	return upTo(v.tally.halted, v.until) > upTo(v.tally.halted, since)
}
