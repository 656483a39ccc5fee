package agent

import (
	"errors"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Unquarantine removes the releases that have this version or directory from quarantine, so that they are tried again;
// "" means all. The version may also be one under which the host's channels name the same bytes.
func (a *Agent) Unquarantine(version string) (released []ledger.Bad, err error) {
	var named []artifact.Release
	if pair, err := a.LastNamed(); err == nil && pair != nil { // without it, the versions that failed are accepted
		named = pair.Releases()
	}
	err = a.Edit("unquarantine", func(book *ledger.Ledger) error {
		known := book.Bad
		if released = book.Unquarantine(version, named...); len(released) == 0 {
			return exit.WithCode(exit.Usage, notQuarantined(version, known))
		}
		return nil
	})
	return released, err
}

// notQuarantined returns the error for a version that is not in quarantine.
func notQuarantined(version string, known []ledger.Bad) error {
	if len(known) == 0 {
		return diag.Held.Hint(errors.New("nothing is quarantined"), "`corpus-agent status` would list it")
	}
	var all []string
	for _, b := range known {
		all = append(all, b.What())
	}
	return diag.Held.Hint(fmt.Errorf("%q is not quarantined", version), "quarantined: %s", strings.Join(all, ", "))
}

// stay reports whether the host keeps the deployed pair, and notes why. If a release of the pair is in quarantine, stay
// replaces it in pair by the deployed one, so that the other project is still updated.
func (r *run) stay(pair *ledger.Pair) (bool, error) {
	named, good := *pair, r.ledger.Runs()
	_ = r.Requested(r.ledger) // requests made since the run began
	if r.isBlocked(named) {
		return r.withhold(named), nil
	}
	r.quarantine.Replace(pair)
	if p := r.ledger.Postponed; p != nil && !p.Pair.Same(*pair) {
		r.ledger.Postponed = nil // the channels have moved on
	}
	if keep, err := r.avoidQuarantined(*pair, named); keep || err != nil {
		return keep, err
	}
	switch wait, early := r.ledger.Waits(*pair, r.Time()); {
	case r.ledger.Hold != nil && good != nil && !good.Same(named) && !r.ledger.StandsInFor(named):
		r.record.Note("this host is held since %s; %s waits", diag.Stamp(r.ledger.Hold.Since), named)
		return r.withhold(named), nil
	case early && good != nil:
		r.record.Note("%s waits until %s: it failed %s because of the host, last in run %s: %s; to retry it at "+
			"once: %s",
			pair, diag.Stamp(wait.Next), diag.Count(wait.Failures, "time"), wait.Run, wait.Reason, wait.AtOnce())
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

// avoidQuarantined reports whether the host keeps the deployed pair because a release of pair is in quarantine. It
// returns an error if nothing is deployed.
func (r *run) avoidQuarantined(pair, named ledger.Pair) (bool, error) {
	bad, quarantined := r.ledger.IsBad(pair)
	const hint = "publish a corrected version, or retry this one: corpus-agent unquarantine %s"
	switch good := r.ledger.Runs(); {
	case !quarantined:
		return false, nil
	case good == nil:
		return false,
			exit.WithCode(exit.Failed,
				diag.Held.Hint(fmt.Errorf("%s is quarantined (%s) and there is nothing else to run", bad.What(), bad.Reason),
					hint, ledger.Release(bad).Version))
	case r.ledger.Good == nil && !pair.BaseAlone():
		r.unresolvedErr = exit.WithCode(exit.Failed,
			diag.Held.Hint(fmt.Errorf("%s is quarantined (%s), and only %s converges", bad.What(), bad.Reason, good),
				hint, ledger.Release(bad).Version))
	case !good.Same(pair):
		r.record.Note("%s is %s", bad.What(), ledger.QuarantinedSince(bad.Run, bad.Reason))
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
	return there && err == nil, err // wrong links are corrected when the pair converges
}

// withhold records in the report that the named pair is not deployed now and that the run is about the deployed pair.
// It returns true.
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
