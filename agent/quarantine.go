package agent

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// withoutQuarantined replaces each release of a pair that is in quarantine by the one that runs. A host that has run
// without base continues so while the first base is in quarantine: its service is still brought up to date.
func (r *run) withoutQuarantined(pair *ledger.Pair) {
	good := r.ledger.Runs()
	if good == nil {
		return
	}
	for _, release := range pair.Releases() {
		for _, b := range r.ledger.Bad {
			if b.Is(release) {
				r.record.Note("%s is quarantined since run %s: %s", release, b.Run, b.Reason)
				*pair = inPlace(*pair, release, *good)
				break
			}
		}
	}
}

// inPlace is a pair with what runs in the place of one of its releases.
func inPlace(pair ledger.Pair, release artifact.Release, good ledger.Pair) ledger.Pair {
	if release.Project == artifact.Base && good.Base == nil {
		pair.Base = nil
		return pair
	}
	for _, runs := range good.Releases() {
		if runs.Project == release.Project {
			return pair.With(runs)
		}
	}
	return pair
}

// quarantineAtFault records in the ledger what follows from a fault.
func (r *run) quarantineAtFault(pair ledger.Pair, f fault) {
	told := &report.Fault{Of: f.of, Release: f.release}
	switch {
	case f.of == report.FaultOfHost:
		p := r.ledger.Postpone(pair, firstLine(f.cause), r.id, r.Time().UTC())
		told.Retry = &p.Next
		r.record.Note("the host is at fault, and not the release: %s", nextTry(p))
	case f.release != nil:
		r.quarantine(pair, *f.release, r.id, firstLine(f.cause))
	}
	r.record.Complete(func(rep *report.Report) { rep.Fault = told })
}

// unquarantine takes a release out of quarantine whose failure the rollback has shown to be the host's.
func (r *run) unquarantine(pair ledger.Pair, cause error) error {
	r.ledger.Bad = structsort.Without(r.ledger.Bad, func(b ledger.Bad) bool { return b.Run == r.id && b.Covers(pair) })
	r.quarantineAtFault(pair, fault{of: report.FaultOfHost, cause: cause})
	return r.save()
}

// nextTry says when a deploy that the host failed is retried.
func nextTry(p ledger.Postponed) string {
	if p.Next.Equal(p.At) {
		return "the next run tries it again"
	}
	return "it is tried again from " + p.Next.Local().Format("2006-01-02 15:04 MST") + " on; at once: " + p.AtOnce()
}

// quarantine keeps a release from being deployed again, as a run of which it was part has found.
func (r *run) quarantine(pair ledger.Pair, release artifact.Release, run, reason string) {
	r.ledger.Quarantine(ledger.Bad{Pair: pair, Release: &release, Reason: reason, Run: run, At: r.Time().UTC()})
}

// isQuarantined reports whether a release of a pair is in quarantine.
func (r *run) isQuarantined(pair ledger.Pair) bool {
	_, bad := r.ledger.IsBad(pair)
	return bad
}

// forgive takes a pair and its releases out of quarantine, since a person has asked for them.
func (r *run) forgive(pair ledger.Pair) { r.ledger.Forgive(pair) }

// noteLeft adds to the quarantine of a pair that not all that it changed on the host was undone.
func (r *run) noteLeft(pair ledger.Pair) {
	r.ledger.Amend(pair, "not all that it changed was undone")
}

// leave quarantines what a person went back from: each release that the host has no more.
func (r *run) leave(left ledger.Pair) {
	for _, release := range left.Releases() {
		if !r.turns.Aborted(release) && (r.ledger.Good == nil || !r.ledger.Good.Has(release)) {
			r.quarantine(left, release, r.id, ledger.ByHand)
		}
	}
	r.ledger.Previous = nil
	r.ledger.Previous = r.lastKept()
}

// Unquarantine lets releases be tried again that have this version or directory; "" means all.
func (a *Agent) Unquarantine(version string) (released []ledger.Bad, err error) {
	err = a.Edit("unquarantine", func(book *ledger.Ledger) error {
		known := book.Bad
		if released = book.Unquarantine(version); len(released) == 0 {
			return exit.WithCode(exit.Usage, notQuarantined(version, known))
		}
		return nil
	})
	return released, err
}

// notQuarantined is the error for a version that is not in quarantine.
func notQuarantined(version string, known []ledger.Bad) error {
	if len(known) == 0 {
		return diag.WithHint(errors.New("nothing is quarantined"), "`corpus-agent status` would list it")
	}
	var all []string
	for _, b := range known {
		all = append(all, b.What())
	}
	return diag.WithHint(fmt.Errorf("%q is not quarantined", version), "quarantined: %s", strings.Join(all, ", "))
}

// inQuarantine are the releases that this host does not deploy, as a report names them.
func (r *run) inQuarantine() []report.Quarantined {
	var all []report.Quarantined
	for _, b := range r.ledger.Bad {
		if b.Release != nil {
			all = append(all, report.Quarantined{Release: *b.Release, Reason: r.record.Show(strings.TrimSpace(b.Reason)),
				Run: b.Run})
		}
	}
	return all
}

// failedBefore reports whether a release is in quarantine since it failed. One from which a person went back did not.
func (r *run) failedBefore(release artifact.Release) bool {
	return slices.ContainsFunc(r.ledger.Bad, func(b ledger.Bad) bool { return b.Is(release) && !byHand(b) })
}

// stay reports whether the host keeps what it has, and says why. Where a release of the pair is in
// quarantine, what runs in its place stands in for it, so that the other is still brought up to date.
func (r *run) stay(pair *ledger.Pair) (bool, error) {
	named, good := *pair, r.ledger.Runs()
	_ = r.Requested(r.ledger) // since the run began
	if r.isBlocked(named) {
		return r.withhold(named), nil
	}
	r.withoutQuarantined(pair)
	if p := r.ledger.Postponed; p != nil && !p.Pair.Same(*pair) {
		r.ledger.Postponed = nil // the channels have moved on
	}
	if keep, err := r.avoidQuarantined(*pair, named); keep || err != nil {
		return keep, err
	}
	switch wait, early := r.ledger.Waits(*pair, r.Time()); {
	case r.ledger.Hold != nil && good != nil && !good.Same(named) && !r.ledger.StandsInFor(named):
		r.record.Note("this host is held since %s; %s waits", r.ledger.Hold.Since.Format("2006-01-02 15:04 MST"), named)
		return r.withhold(named), nil
	case early && good != nil:
		r.record.Note("%s waits until %s: it failed %d times because of the host, last in run %s: %s; to retry it at "+
			"once: %s",
			pair, wait.Next.Local().Format("2006-01-02 15:04 MST"), wait.Failures, wait.Run, wait.Reason, wait.AtOnce())
		return r.withhold(named), nil
	case wait.Failures > 0:
		r.record.Note(r.record.DoesOrWould("%s is retried: it failed because of the host in run %s: %s",
			"%s would be retried: it failed because of the host in run %s: %s"), pair, wait.Run, wait.Reason)
		return false, nil
	}
	if !pair.Same(named) {
		r.report.Withheld = &named
	}
	return r.deployed(*pair)
}

// avoidQuarantined reports whether the host keeps what it has since a release of a pair is in quarantine, and fails
// where it has nothing else.
func (r *run) avoidQuarantined(pair, named ledger.Pair) (bool, error) {
	bad, quarantined := r.ledger.IsBad(pair)
	const hint = "publish a corrected version, or retry this one: corpus-agent unquarantine %s"
	switch good := r.ledger.Runs(); {
	case !quarantined:
		return false, nil
	case good == nil:
		return false,
			exit.WithCode(exit.Failed,
				diag.WithHint(fmt.Errorf("%s is quarantined (%s) and there is nothing else to run", bad.What(), bad.Reason),
					hint, ledger.Release(bad).Version))
	case r.ledger.Good == nil && !pair.BaseAlone():
		r.unresolvedErr = exit.WithCode(exit.Failed,
			diag.WithHint(fmt.Errorf("%s is quarantined (%s), and only %s converges", bad.What(), bad.Reason, good),
				hint, ledger.Release(bad).Version))
	case !good.Same(pair):
		r.record.Note("%s is quarantined since run %s: %s", bad.What(), bad.Run, bad.Reason)
	default:
		return false, nil
	}
	return r.withhold(named), nil
}

// deployed reports whether a pair is deployed, and its releases are on the disk.
func (r *run) deployed(pair ledger.Pair) (bool, error) {
	good := r.ledger.Runs()
	if good == nil || !good.Same(pair) || r.ledger.Running != nil || r.ledger.Failing != nil {
		return false, nil
	}
	there, err := r.Held().Holds(good.Releases()...)
	if err == nil && !there {
		r.record.Note(r.record.DoesOrWould(
			"a release of %s, which is deployed, was missing on the disk; it is deployed again",
			"a release of %s, which is deployed, is missing on the disk; it would be deployed again"), good)
	}
	return there && err == nil, err // links that lead elsewhere are corrected on the way
}

// withhold records that what the channels name does not get onto the host now: the run is about what
// runs.
func (r *run) withhold(named ledger.Pair) bool {
	r.report.Withheld, r.report.To = &named, r.ledger.Good
	return true
}

// heldMeanwhile reports whether the host was held since the run decided to deploy a pair.
func (r *run) heldMeanwhile(pair ledger.Pair) bool {
	runs := r.ledger.Runs()
	if r.test || r.Requested(r.ledger) != nil || r.ledger.Hold == nil || runs == nil || r.ledger.Running != nil ||
		runs.Same(pair) ||
		r.ledger.StandsInFor(pair) {
		return false
	}
	r.record.Note("this host was held since this run began; %s waits", pair)
	return r.withhold(pair)
}

// byHand reports whether a person has put a release into quarantine by going back from it.
func byHand(b ledger.Bad) bool { return strings.HasPrefix(b.Reason, ledger.ByHand) }

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// showQuarantine notes what a rollback by hand from a pair to another would quarantine.
func (r *run) showQuarantine(left, target ledger.Pair) {
	for _, release := range left.Releases() {
		if !target.Has(release) {
			r.record.Note("would quarantine %s", release)
		}
	}
}

func (r *run) lastKept() *ledger.Pair { return r.LastKeptOf(r.ledger) }
