package agent

import (
	"context"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// This file is about rollbacks by hand that find a deploy which was cut short. What was good before that deploy is still
// what the ledger calls deployed, and the links may lead elsewhere. So the rollback leaves the deploy and goes no further
// back.

// cutDeploy is the deploy of another pair than the deployed one that was cut short; nil for none. A rollback by hand that
// was cut short is none: it goes to the pair that is to run.
func (r *run) cutDeploy() *ledger.Running {
	cut, good := r.ledger.Running, r.ledger.Good
	if cut == nil || good == nil || cut.Back || cut.Leaves != nil || cut.Pair.Same(*good) {
		return nil
	}
	return cut
}

// leaveCut is settleCut for a rollback by hand to a version, a run or, for "", the pair before. A deploy that was cut short
// is not taken up again: it is rolled back, and its releases are quarantined as those are from which a person goes back.
// find looks for where to go, so that a mistake in that changes nothing.
func (r *run) leaveCut(ctx context.Context, to string, find func(to string) error) error {
	cut := r.cutDeploy()
	if cut == nil || r.test || r.goingBack(cut) {
		return r.settleCut(ctx)
	}
	if err := r.CheckPillar(r.identity.Service); err != nil {
		return err
	}
	if to != "" {
		if err := find(to); err != nil {
			return exit.WithCode(exit.Usage, err)
		}
	}
	r.record.Note("run %s was cut short while it deployed %s; the host goes back to %s, which was deployed before", cut.Run, cut.Pair, r.ledger.Good)
	r.acted, r.report.Leaves = true, &cut.Pair
	for _, release := range cut.Pair.Releases() {
		if !r.ledger.Good.Has(release) {
			r.quarantine(cut.Pair, release, r.id, ledger.ByHand)
		}
	}
	cut.Failed, cut.Attempts, cut.Reboots, cut.Cuts = true, 0, 0, 0 // from here on, attempts of the way back
	if err := r.save(); err != nil {
		return err
	}
	return r.finishBack(ctx, cut)
}

// unlessGood is the version to go back to. A person who names the deployed one, while a deploy or its way back was cut
// short, names what that way back leads to, as "" does.
func (r *run) unlessGood(version string) string {
	cut := r.ledger.Running
	if cut != nil && (r.cutDeploy() != nil || r.goingBack(cut)) && r.ledger.Good != nil && r.ledger.Good.Is(version) {
		return ""
	}
	return version
}

// askedBefore is where a rollback by hand went that was cut short, and that none has finished; nil for nowhere.
func (r *run) askedBefore() *ledger.Pair {
	cut := r.ledger.Running
	if cut == nil || cut.Leaves == nil || !r.Held().Has(cut.Pair.Releases()...) {
		return nil
	}
	if _, withdrawn := r.ledger.IsWithdrawn(cut.Pair); withdrawn || r.goingBack(cut) {
		return nil
	}
	return &cut.Pair
}

// stayBack is a rollback that has finished the way back of a run that was cut short: going further back would leave the
// release that this way back led to.
func (r *run) stayBack(ctx context.Context) error {
	good := *r.ledger.Good
	r.acted, r.report.To = true, &good
	r.record.Note("the way back of run %s to %s is finished, and goes no further; rollback --to VERSION does", r.finished.Run, good)
	return r.stuckBack(r.settleBack(ctx, good))
}

// showStayBack is the dry run of stayBack, and of the way back that comes before it.
func (r *run) showStayBack(ctx context.Context, left ledger.Pair) error {
	good := *r.ledger.Good
	r.report.To = &good
	r.record.Note("would take back the deploy of %s, which was cut short, and stay on %s", left, good)
	r.showQuarantine(left, good)
	r.showActs(ctx, good)
	return r.converge(ctx, good)
}

// showQuarantine notes what a rollback by hand from a pair to another would quarantine.
func (r *run) showQuarantine(left, target ledger.Pair) {
	for _, release := range left.Releases() {
		if !target.Has(release) {
			r.record.Note("would quarantine %s", release)
		}
	}
}

// neverDeployed is the error of a rollback where nothing was deployed.
func (r *run) neverDeployed() error {
	what, first := "on this host", "corpus-agent deploy"
	if r.Alone != "" {
		what, first = "of "+r.Alone, "corpus-agent project deploy "+r.Alone
	}
	return exit.WithCode(exit.Usage, diag.WithHint(fmt.Errorf("nothing %s was deployed yet, so there is nothing to roll back", what),
		"deploy first: %s; corpus-agent why says what keeps it from that", first))
}

// byHand reports whether a person has put a release into quarantine by going back from it.
func byHand(b ledger.Bad) bool { return strings.HasPrefix(b.Reason, ledger.ByHand) }
