package main

import (
	"fmt"
	"slices"
	"time"

	hosts "github.com/corpus-agent/corpus-agent/agent/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// verdict returns whether the hosts of a wave may take the release now. A halt shows also if a person paused the
// rollout: a resume would forgive its failures.
func (u *activeRollout) verdict(wave int) rollout.Verdict {
	start := u.rollout.Start
	start.Paused = false
	if v := u.seen.Decide(u.plan, start, wave, u.now); halts(v) || !u.rollout.Start.Paused {
		return v
	}
	return u.seen.Decide(u.plan, u.rollout.Start, wave, u.now)
}

// halts reports whether failures stop a rollout.
func halts(v rollout.Verdict) bool { return v.Reason == rollout.Halted || v.Reason == rollout.Stops }

// failedIn returns the number of hosts of a wave on which the release failed.
func (u *activeRollout) failedIn(wave int) (failed int) {
	for _, said := range u.failures() {
		if said.Wave == wave {
			failed++
		}
	}
	return failed
}

// tooFew returns a text that says how many healthy hosts a wave lacks. The state is stuck if too many of its hosts
// failed for the wave to become healthy, and running otherwise.
func (u *activeRollout) tooFew(v rollout.Verdict) (state, why string) {
	for i := range u.plan.Waves {
		if u.plan.WaveName(i) != v.Wave {
			continue
		}
		failed := u.failedIn(i)
		if n := u.rollout.Start.Hosts[i]; n-failed < v.Need {
			return "stuck", fmt.Sprintf("%s, since it failed on %d of the %s of that wave: %s", v, failed,
				diag.Count(n, "host"), u.wayOn(fmt.Sprintf("or `corpus rollout skip-wave %s %s`", u.ref.Project,
					u.ref.Channel)))
		}
		break
	}
	return "running", v.String()
}

// wayOn returns what lets a rollout continue that is stuck, and what ends it. other is another way to end it.
func (u *activeRollout) wayOn(other string) string {
	again := "their next run takes it again"
	if u.rolledBack() { // elsewhere nothing is in quarantine
		again = fmt.Sprintf("`corpus-agent unquarantine %s` there, and %s", trust.Printable(u.version), again)
	}
	return fmt.Sprintf("if these hosts were at fault and are repaired, %s; otherwise `corpus rollout abort %s %s`, %s",
		again, u.ref.Project, u.ref.Channel, other)
}

// rolledBack reports whether a host rolled back from the release, which may then be in quarantine there.
func (u *activeRollout) rolledBack() bool {
	return slices.ContainsFunc(u.failures(), func(e hosts.Entry) bool { return e.Outcome == hosts.RolledBack })
}

// waitsAt returns the index of the first wave whose hosts do not take the release yet; the number of waves if all hosts
// take it.
func (u *activeRollout) waitsAt() int {
	for i := range u.plan.Waves {
		if !u.verdict(i).Take {
			return i
		}
	}
	return len(u.plan.Waves)
}

// next returns the state of a rollout, and a sentence about the next event. The states are running, flooded, withdrawn,
// stuck, paused, halted, aborted and finished.
func (u *activeRollout) next(waiting, failed int) (state, next string) {
	v := u.verdict(len(u.plan.Waves) - 1)
	if v.Reason == rollout.Aborted {
		return "aborted", fmt.Sprintf("hosts that took the release go back to %s", u.version)
	}
	stopped := halts(v) || v.Reason == rollout.Paused
	if u.yanked && (waiting > 0 || stopped) {
		return "withdrawn", fmt.Sprintf("no host takes the release, since it is withdrawn, and hosts that have it keep it: "+
			"%s", u.wayBack())
	}
	if stopped {
		return u.stoppedState(v)
	}
	if waiting == 0 {
		return u.finished(failed)
	}
	if u.flood != nil {
		return "flooded", "no more hosts take the release, since they do not read so many objects: " + diag.HintOf(u.flood)
	}
	if at := u.waitsAt(); at < len(u.plan.Waves) {
		v := u.verdict(at)
		if v.Reason == rollout.TooFew {
			return u.tooFew(v)
		}
		return "running", v.String()
	}
	return "running", fmt.Sprintf("%s may take the release at the next look", diag.Count(waiting, "host"))
}

// finished returns the state of a rollout of which every host has a result. It is stuck if a wave has too few healthy
// hosts, except a wave that a person skipped.
func (u *activeRollout) finished(failed int) (state, next string) {
	next = "every host of the rollout has finished"
	if failed > 0 {
		next += ", and it failed on " + diag.Count(failed, "host")
	}
	healthy := make([]int, len(u.rollout.Start.Hosts))
	for _, said := range u.seen.Results {
		if said.Outcome == hosts.Healthy {
			healthy[said.Wave]++
		}
	}
	for w := u.rollout.Start.Skipped; w < len(healthy); w++ {
		need, have := u.within().Healthy.Of(u.rollout.Start.Hosts[w]), healthy[w]
		if have < need && !u.arrivedAsStarted() {
			return "stuck", fmt.Sprintf("%s; it has not arrived, since it needs %s of wave %s, and there are %d: %s",
				next, diag.Count(need, "healthy host"), u.plan.WaveName(w), have, u.wayOn("or promote a corrected release"))
		}
	}
	return "finished", next
}

// stoppedState returns the state of a rollout that is paused or halted, and the commands that continue or end it.
func (u *activeRollout) stoppedState(v rollout.Verdict) (state, next string) {
	of := u.ref.Project + " " + u.ref.Channel
	if !halts(v) {
		return "paused", fmt.Sprintf("no host takes the release until `corpus rollout resume %s`", of)
	}
	also := ""
	if u.rollout.Start.Paused {
		also = "it is paused as well, and "
	}
	return "halted", fmt.Sprintf("no host takes the release: %s`corpus rollout resume %s` continues, and `corpus rollout "+
		"abort %s` rolls back", also, of, of)
}

// since returns the time from which a rollout is in a state: that of the halt or of the pause, and otherwise of the
// start.
func (u *activeRollout) since(state string) time.Time {
	at := u.rollout.Start.At
	switch {
	case state == "halted" && len(u.seen.Halts) > 0:
		return u.seen.Halts[0].At
	case state == "halted":
		for _, said := range u.failures() {
			if said.At.After(at) {
				at = said.At
			}
		}
	case state == "paused":
		for _, m := range u.rollout.Start.Moves {
			if m.What == "pause" {
				at = m.At
			}
		}
	}
	return at
}
