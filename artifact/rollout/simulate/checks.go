package simulate

import (
	"fmt"
	"sort"
	"time"
)

// checks verifies a simulation independently: it counts the results in the store without the code that decides, and
// records violations of the rules.
type checks struct {
	healthy [][]time.Time // by wave, when the store received the result
	failed  []time.Time
	broken  []string
}

const mostBroken = 10 // notes of a simulation

func (c *checks) note(format string, args ...any) {
	if len(c.broken) < mostBroken {
		c.broken = append(c.broken, fmt.Sprintf(format, args...))
	}
}

// said counts a result that the store received.
func (c *checks) said(r *run, i int, now time.Time, failed bool) {
	for len(c.healthy) < len(r.Plan.Waves) {
		c.healthy = append(c.healthy, nil)
	}
	if failed {
		c.failed = append(c.failed, now)
		return
	}
	c.healthy[r.hosts[i].wave] = append(c.healthy[r.hosts[i].wave], now)
}

// started checks that a host may take the release: no limit was reached as far as it can see, and the waves before it
// have enough healthy hosts and have soaked.
func (c *checks) started(r *run, i int, now time.Time) {
	visible := now.Add(-r.Faults.Stale)
	failed := before(c.failed, visible)
	finished := failed
	for _, wave := range c.healthy {
		finished += before(wave, visible)
	}
	limit := r.Plan.Halt
	share := limit.Share > 0 && finished >= 20 && failed > 0 &&
		float64(failed)*10000 >= float64(limit.Share)*float64(finished)
	// A host that reads an older listing may see a larger or a smaller share of failures.
	if limit.Hosts > 0 && failed >= limit.Hosts || share && r.Faults.Stale == 0 {
		c.note("host %d took it at %s, with %d of %d hosts failed", i, now.Sub(began), failed, finished)
	}
	if r.Urgent {
		return
	}
	earliest := began
	for w := range r.hosts[i].wave {
		need := (r.start.Hosts[w]*int(r.Plan.Healthy) + 9999) / 10000
		if len(c.healthy) <= w && need > 0 || need > 0 && len(c.healthy[w]) < need {
			c.note("host %d of wave %d took it at %s, before %d hosts of wave %d were healthy", i, r.hosts[i].wave,
				now.Sub(began), need, w)
			return
		}
		if need > 0 && c.healthy[w][need-1].After(earliest) {
			earliest = c.healthy[w][need-1]
		}
		earliest = earliest.Add(time.Duration(r.Plan.Waves[w].Soak))
	}
	if now.Before(earliest) {
		c.note("host %d of wave %d took it at %s, before %s", i, r.hosts[i].wave, now.Sub(began), earliest.Sub(began))
	}
}

// before returns the number of the ascending times that are before a limit.
func before(times []time.Time, limit time.Time) int {
	return sort.Search(len(times), func(i int) bool { return !times[i].Before(limit) })
}

// after checks the end: a release that does not fail reaches every host that is not dead, if enough of them are left.
func (c *checks) after(r *run) []string {
	f := r.Fails
	good := f.Share == 0 && f.Region == "" && f.Cluster == "" && f.After == 0 && f.Late == 0 && len(f.Names) == 0 &&
		len(f.Wave) == 0
	if good && r.Faults.Dead == 0 && r.result.Healthy != r.Hosts {
		c.note("a good release reached %d of %d hosts in %s", r.result.Healthy, r.Hosts, r.result.Ended)
	}
	if good && r.result.Stopped != "" {
		c.note("a good release was stopped: %s", r.result.Stopped)
	}
	return c.broken
}
