package simulate

import (
	"container/heap"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/rollout"
)

// take begins the deploy of a host.
func (r *run) take(i int, now time.Time) {
	h := &r.hosts[i]
	r.changed = now
	r.result.Tried++
	r.result.Starts = append(r.result.Starts, Event{now.Sub(began), h.wave, i})
	r.checks.started(r, i, now)
	if r.chance(r.Faults.Dead) {
		h.state = dead
		r.left--
		r.result.Dead++
		return
	}
	h.state, h.ends = deploying, now.Add(r.Deploy/10+r.upTo(r.Deploy*9/10))
	heap.Push(&r.ending, ending{h.ends, i})
}

// settle ends the deploys that are finished at a time.
func (r *run) settle(now time.Time) {
	for len(r.ending) > 0 && !r.ending[0].at.After(now) {
		e := heap.Pop(&r.ending).(ending)
		h := &r.hosts[e.host]
		if h.state == finished { // it was healthy, and fails now
			r.recordResult(e.host, e.at, true)
			continue
		}
		h.state = finished
		r.left--
		r.release(e.host)
		r.report(e.host, e.at)
	}
}

// report writes the result of a host to the store, or keeps it for the host's next attempt.
func (r *run) report(i int, now time.Time) {
	h := &r.hosts[i]
	if h.pending = r.away(now); h.pending {
		return
	}
	failed := r.fails(i)
	r.recordResult(i, now, failed)
	if late := r.Fails.Late; late > 0 && !failed {
		heap.Push(&r.ending, ending{now.Add(late), i})
	}
}

func (r *run) recordResult(i int, now time.Time, failed bool) {
	if failed {
		r.result.Failed++
	} else {
		r.result.Healthy++
	}
	r.tally.Add(rollout.Result{Host: r.hosts[i].Name, Wave: r.hosts[i].wave, Failed: failed, At: now})
	r.checks.said(r, i, now, failed)
	r.changed, r.result.Ended = now, max(r.result.Ended, now.Sub(began))
}

// fails reports whether the release fails on a host.
func (r *run) fails(i int) bool {
	h, f := &r.hosts[i], r.Fails
	switch {
	case f.Names[h.Name], f.Wave[h.wave], f.Region != "" && h.Region == f.Region, f.Cluster != "" &&
		h.Cluster == f.Cluster,
		f.After > 0 && h.ends.Sub(began) > f.After:
		return true
	}
	return r.chance(f.Share)
}
