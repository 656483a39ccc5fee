package fleet

import (
	"fmt"
	"slices"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
)

// clockSlack is how far clocks may be apart.
const clockSlack = 10 * time.Minute

// storeClock compares the clock of the store with those of the hosts that ran lately by the clock of the viewer. If
// most of them agree with the viewer and not with the store, behind is how far the clock of the store is behind theirs,
// negative if it is ahead. now is the time by the clock of the store, also of a store that does not send it.
func (q Query) storeClock(listed []hostrecord.Listed) (now time.Time, behind time.Duration) {
	viewer := q.Viewer
	if viewer.IsZero() {
		viewer = q.Now
	}
	lately := max(q.SilentAfter, clockSlack)
	ran, apart := 0, []time.Duration{}
	for _, r := range listed {
		if at := r.Started(); at.Before(viewer.Add(-lately)) || at.After(viewer.Add(clockSlack)) {
			continue
		}
		ran++
		// A host that is ahead by less than this may have run lately by its own clock alone.
		if by := r.Started().Sub(r.Seen); by > lately+clockSlack || r.Seen.After(viewer.Add(lately+clockSlack)) {
			apart = append(apart, by)
		}
	}
	if 2*len(apart) <= ran {
		return q.Now, 0
	}
	slices.Sort(apart)
	behind = apart[len(apart)/2]
	if viewer.Sub(q.Now).Abs() > clockSlack {
		return q.Now, behind // the store has sent its time
	}
	return q.Now.Add(-behind), behind
}

// byHosts returns the record as if the clock of the store were that of the hosts.
func (h *Host) byHosts() *hostrecord.Listed {
	r := h.Listed
	r.Seen = r.Seen.Add(h.storeBehind)
	return &r
}

// Ahead reports whether the clock of the host is ahead, and not that of the store behind those of most hosts.
func (h *Host) Ahead() bool { return h.byHosts().Ahead() }

// AheadBy returns how far the clock of the host was ahead at its run.
func (h *Host) AheadBy() string { return h.byHosts().AheadBy() }

// clocks returns the entry for a store whose clock is not that of the hosts; none if it is.
func (v *View) clocks() []Attention {
	by, way := v.storeBehind, "behind"
	if by < 0 {
		by, way = -by, "ahead of"
	}
	if by == 0 {
		return []Attention{}
	}
	return []Attention{{What: StoreClock, Hosts: []string{}, Since: v.At,
		Why: fmt.Sprintf("it is about %s %s the clocks of the hosts that ran last and of this machine, so the times at "+
			"which the store received anything are off by as much", by.Round(clockSlack), way),
		Hint: "set the clock of the machine that keeps the store (timedatectl)"}}
}
