package rollout

import (
	"fmt"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Reason is the reason why a host takes a release, or does not take it yet.
type Reason string

// The reasons.
const (
	Turn    Reason = "turn"    // it takes the release
	Urgent  Reason = "urgent"  // it takes the release, since waves are not waited for
	Waits   Reason = "waits"   // until the time of its wave
	TooFew  Reason = "too few" // hosts of a wave before are healthy
	Closed  Reason = "closed"  // outside of the windows
	Paused  Reason = "paused"
	Halted  Reason = "halted" // a halt was recorded
	Stops   Reason = "stops"  // a limit of failures is reached, and this host is the first to find it
	Aborted Reason = "aborted"
)

// Verdict is the decision of a host about a release.
type Verdict struct {
	Take   bool
	Reason Reason
	Not    time.Time // its turn is not before this time, if known; zero otherwise

	Wave        string // wave that the reason is about
	Have, Need  int    // healthy hosts of that wave
	Failed, All int    // failed hosts, and finished hosts
	Err         error  // a window that cannot be read
}

// Decide decides whether a host of a wave takes the release now. seen has the verified results of the hosts before it;
// now is the store's time, so the host's own clock does not matter. A host that could not read the store has no View
// and must stay on its present release. Healthy hosts of earlier waves count only if their results were read; failures
// that a host has not read yet cannot stop it.
func Decide(p Plan, s Start, wave int, now time.Time, seen View) Verdict {
	p = p.Within(s, seen)
	switch {
	case s.Aborted:
		return Verdict{Reason: Aborted}
	case s.Paused:
		return Verdict{Reason: Paused}
	case seen.haltedSince(s.Resumed):
		return Verdict{Reason: Halted}
	}
	if failed, finished := seen.failedSince(s.Resumed), seen.finished(s.Resumed); p.Halt.Reached(failed, finished) {
		return Verdict{Reason: Stops, Failed: failed, All: finished}
	}
	if s.Urgent {
		return Verdict{Take: true, Reason: Urgent}
	}
	if v := p.turn(s, wave, now, seen); !v.Take {
		return v
	}
	return p.window(wave, now)
}

// Early decides without the results of other hosts: the host must stay on its present release, or has to read the
// results from the store (Take).
func (p Plan) Early(s Start, wave int, now time.Time) Verdict {
	switch {
	case s.Aborted:
		return Verdict{Reason: Aborted}
	case s.Paused:
		return Verdict{Reason: Paused}
	case s.Urgent:
		return Verdict{Take: true, Reason: Urgent}
	}
	begins := s.begins(now)
	for w := min(s.Skipped, wave); w < min(wave, len(p.Waves)); w++ {
		begins = begins.Add(time.Duration(p.Waves[w].Soak))
	}
	if now.Before(begins) {
		return Verdict{Reason: Waits, Not: begins, Wave: p.WaveName(wave)}
	}
	return p.window(wave, now)
}

// startSlack is how far the time of a start may be ahead of the store's clock.
const startSlack = 5 * time.Minute

// Ahead reports whether the time of a start is in the future, since the store's clock was ahead when it started. now is
// the store's time.
func (s Start) Ahead(now time.Time) bool { return s.At.After(now.Add(startSlack)) }

// begins returns the time from which the first wave takes the release. A start in the future does not count: the waves
// after the first one wait for its healthy hosts, and for the soak since then.
func (s Start) begins(now time.Time) time.Time {
	if s.Ahead(now) {
		return time.Time{}
	}
	return s.At
}

// Reached reports whether this number of failed hosts stops a rollout.
func (h Halt) Reached(failed, finished int) bool {
	return h.Hosts > 0 && failed >= h.Hosts ||
		h.Share > 0 && failed > 0 && finished >= ShareCountsFrom && int64(failed)*int64(All) >= int64(h.Share)*int64(finished)
}

// turn decides whether the wave of a host has begun. Each earlier wave must have enough healthy hosts, and its soak
// time must have passed since then.
func (p Plan) turn(s Start, wave int, now time.Time, seen View) Verdict {
	begins := s.begins(now)
	for w := min(s.Skipped, wave); w < min(wave, len(p.Waves)); w++ {
		need := 0
		if w < len(s.Hosts) {
			need = p.Healthy.Of(s.Hosts[w])
		}
		if need > 0 {
			reached, ok := seen.nthHealthy(w, need)
			if !ok {
				return Verdict{Reason: TooFew, Not: begins, Wave: p.WaveName(w), Have: seen.Healthy(w), Need: need}
			}
			if reached.After(begins) {
				begins = reached
			}
		}
		begins = begins.Add(time.Duration(p.Waves[w].Soak))
	}
	if now.Before(begins) {
		return Verdict{Reason: Waits, Not: begins, Wave: p.WaveName(wave)}
	}
	return Verdict{Take: true, Reason: Turn, Wave: p.WaveName(wave)}
}

// window decides whether one of the plan's windows is open.
func (p Plan) window(wave int, now time.Time) Verdict {
	v := Verdict{Take: len(p.Windows) == 0, Reason: Turn, Wave: p.WaveName(wave)}
	for _, w := range p.Windows {
		open, err := w.Open(now)
		if open {
			v.Take, v.Not = true, time.Time{}
			return v
		}
		if v.Err == nil {
			v.Err = err
		}
		if opens := w.next(now); !opens.IsZero() && (v.Not.IsZero() || opens.Before(v.Not)) {
			v.Not = opens
		}
	}
	if !v.Take {
		v.Reason = Closed
	}
	return v
}

// String returns the reason as text for people.
func (v Verdict) String() string {
	switch v.Reason {
	case Turn:
		return "it is the turn of wave " + v.Wave
	case Urgent:
		return "the rollout is urgent"
	case Waits:
		return fmt.Sprintf("wave %s begins at %s at the earliest", v.Wave, diag.StampUTC(v.Not))
	case TooFew:
		return fmt.Sprintf("it needs %s of wave %s, and there are %d", diag.Count(v.Need, "healthy host"), v.Wave, v.Have)
	case Closed:
		if v.Err != nil {
			return v.Err.Error()
		}
		if v.Not.IsZero() {
			return "no window of the plan is open"
		}
		return fmt.Sprintf("no window of the plan is open; the next one opens at %s", diag.StampUTC(v.Not))
	case Stops:
		return fmt.Sprintf("it failed on %d of %d hosts, which is the limit", v.Failed, v.All)
	}
	return "the rollout is " + string(v.Reason)
}

// Slots returns the number of hosts of a cluster of n that may deploy at the same time, at least one.
func (p Plan) Slots(n int) int { return max(1, int(int64(p.AtOnce)*int64(n)/int64(All))) }
