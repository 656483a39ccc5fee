package rollout

import (
	"time"

	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	plans "github.com/corpus-agent/corpus-agent/artifact/rollout"
)

// Decide returns whether hosts of a wave take the release now.
func (e Evidence) Decide(p plans.Plan, s plans.Start, wave int, now time.Time) plans.Verdict {
	return plans.Decide(p, s, wave, e.advanced(now), e.View(now))
}

// atLeast returns a time, or that of the newest evidence if it is later.
func (e Evidence) atLeast(now time.Time) time.Time {
	if e.newest.After(now) {
		return e.newest
	}
	return now
}

// advanced returns the time for decisions: as atLeast, but evidence from the future, of a store whose clock was ahead,
// does not advance the time by more than clockSlack.
func (e Evidence) advanced(now time.Time) time.Time {
	at, latest := e.atLeast(now), now.Add(clockSlack)
	if at.After(latest) {
		return latest
	}
	return at
}

// sinceResume returns a failure that its host signed since the last resume with a time after it, if the store's clock
// gave it an earlier one: the clock was ahead before the resume, or is behind now.
func (r Rollout) sinceResume(said Entry) Entry {
	_, forgiven := said.splitRun()
	if forgiven != 0 && forgiven == r.epoch() && !said.At.After(r.Start.Resumed) {
		said.At = r.Start.Resumed.Add(time.Second)
	}
	return said
}

// notAhead returns a healthy result with the time of its run, by the host's clock, if the store's clock was ahead when
// the store received it: the soak of its wave would end that much later. The time is after the start of the rollout,
// and not after now. A host may name any time for its run: instead of one in the future the start counts, since the
// time of each look would put off the next wave without end. Failures keep their time, since they count from the last
// resume on.
func (g *gathering) notAhead(said Entry) Entry {
	if said.Outcome != Healthy || g.now.IsZero() || !said.At.After(g.now.Add(clockSlack)) {
		return said
	}
	start := g.rollout.Start.At
	at, err := time.Parse(hostrecord.RunTime, said.Run)
	if err != nil || !at.Before(g.now) || at.Before(start) && start.Before(g.now) {
		at = start
	}
	if !at.Before(g.now) {
		at = g.now
	}
	said.At = at
	return said
}
