package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Rollback deploys the previous pair and quarantines the one that ran, so that the next run of the timer does not
// deploy it again.
func (a *Agent) Rollback(ctx context.Context) (*report.Report, error) { return a.RollbackTo(ctx, "") }

// RollbackTo goes back to an earlier release of the service that is still on this host. version is the version or the
// directory of the release; "" means the previous one.
func (a *Agent) RollbackTo(ctx context.Context, version string) (*report.Report, error) {
	return a.pass(ctx, "rollback", false, func(r *run) error {
		if r.ledger.Runs() == nil && r.ledger.Running == nil {
			return r.neverDeployed()
		}
		if err := r.identify(ctx, grains.Identity{}); err != nil {
			return err
		}
		version := r.unlessGood(version)
		exists := func(to string) error { _, err := r.earlier(to); return err }
		if err := r.leaveInterrupted(ctx, version, exists); err != nil {
			return err
		}
		if r.finished != nil && version == "" && r.ledger.Good != nil && r.ledger.Failing == nil {
			return r.stayBack(ctx)
		}
		return r.rollback(ctx, version)
	})
}

func (r *run) rollback(ctx context.Context, version string) error {
	if r.ledger.Good == nil {
		return r.neverDeployed()
	}
	target, err := r.earlier(version)
	if err != nil {
		return exit.WithCode(exit.Usage, err)
	}
	if err := errors.Join(r.withdrawn(target), r.releases.Verify(ctx, target)); err != nil {
		return err
	}
	// A person who names a quarantined pair wants it tried again.
	r.ledger.Forgive(target)
	return r.goBack(ctx, target, *r.ledger.Good)
}

// goBack applies an earlier pair. If it replaces a failed pair on which a dev host stayed, there is nothing to
// quarantine.
func (r *run) goBack(ctx context.Context, target, left ledger.Pair) error {
	r.report.To = &target
	if !left.Same(target) {
		r.leaves, r.report.Leaves = &left, &left
	}
	return r.apply(ctx, target)
}

// withdrawn returns the error of a pair to go back to of which a release was withdrawn; nil if none was.
func (r *run) withdrawn(target ledger.Pair) error {
	w, yes := r.ledger.IsWithdrawn(target)
	if !yes {
		return nil
	}
	return exit.WithCode(exit.Refused,
		diag.Withdrawn.Hint(fmt.Errorf("%s, to go back to, was withdrawn on %s: %s", w.Release, w.At.Format("2006-01-02"),
			w.Reason),
			"publish a corrected version; `corpus yank --undo` reverts the withdrawal"))
}

// earlier returns the pair to go back to.
func (r *run) earlier(version string) (ledger.Pair, error) {
	good := r.ledger.Good
	if version == "" {
		if asked := r.askedBefore(); asked != nil {
			return *asked, nil
		}
		if r.ledger.Failing != nil && good != nil && r.Held().Has(good.Releases()...) {
			return *good, nil
		}
		if target := r.LastKeptOf(r.ledger); target != nil {
			return *target, nil
		}
		return ledger.Pair{}, diag.Rollback.Hint(errors.New("there is no earlier deploy to go back to"), "%s", r.keptHint())
	}
	if good != nil && good.Is(version) {
		return ledger.Pair{}, diag.Rollback.Hint(fmt.Errorf("%s already runs", version),
			"`corpus-agent converge` corrects drift")
	}
	var without *ledger.Pair
	for _, pair := range slices.Backward(r.ledger.History) {
		switch {
		case good == nil || pair.Same(*good) || !pair.Is(version):
		case r.Held().Has(pair.Releases()...):
			return pair, nil
		case without == nil && r.Held().Has(pair.Service):
			without = &pair
		}
	}
	hint := "nothing else is kept on this host; promote the version to its channel"
	if known := r.keptVersions(); len(known) > 0 {
		hint = "kept on this host: " + strings.Join(known, ", ")
	}
	err := fmt.Errorf("no release %q that was good is kept on this host", version)
	if without != nil {
		err = fmt.Errorf("%s is kept on this host, but %s, with which it was good, is not", without.Service, without.Base)
	}
	return ledger.Pair{}, diag.Rollback.Hint(err, "%s", hint)
}

// keptVersions returns the versions that a person can go back to with --to, the newest first.
func (r *run) keptVersions() (known []string) {
	for _, pair := range slices.Backward(r.ledger.History) {
		if r.ledger.Good != nil && !pair.Same(*r.ledger.Good) && r.Held().Has(pair.Releases()...) &&
			!slices.Contains(known, pair.Service.Version) {
			known = append(known, pair.Service.Version)
		}
	}
	return known
}

// keptHint returns a hint that names the releases that a person can go back to with --to.
func (r *run) keptHint() string {
	known := r.keptVersions()
	if len(known) == 0 {
		return "nothing else is kept on this host; promote a version to its channel"
	}
	return "rollback --to VERSION goes to one that is in quarantine or was withdrawn; kept on this host: " +
		strings.Join(known, ", ")
}

// ShowRollback performs the dry run of RollbackTo: it shows the pair to go back to, what would be quarantined and
// restarted, and what its states would change.
func (a *Agent) ShowRollback(ctx context.Context, version string) (*report.Report, error) {
	return a.pass(ctx, "rollback", true, func(r *run) error {
		if r.ledger.Good == nil {
			return r.neverDeployed()
		}
		if err := r.identify(ctx, grains.Identity{}); err != nil {
			return err
		}
		if err := r.settleInterrupted(ctx); err != nil {
			return err
		}
		version := r.unlessGood(version)
		if cut := r.ledger.Running; cut != nil && version == "" && r.ledger.Failing == nil &&
			(r.goingBack(cut) || r.interruptedDeploy() != nil) {
			return r.showStayBack(ctx, cut.Pair)
		}
		target, err := r.earlier(version)
		if err != nil {
			return exit.WithCode(exit.Usage, err)
		}
		if err := errors.Join(r.withdrawn(target), r.releases.Verify(ctx, target)); err != nil {
			return err
		}
		return r.showRollback(ctx, target)
	})
}

func (r *run) showRollback(ctx context.Context, target ledger.Pair) error {
	r.report.To = &target
	r.record.Note("would go back to %s", target)
	r.quarantine.Show(*r.ledger.Good, target)
	r.showActs(ctx, target)
	plan, _, err := r.undo.Plan(ctx, r.undo.Between(*r.ledger.Good, target, r.ledger.Previous))
	switch {
	case err != nil:
		r.record.Note("cannot determine which changes of the states of %s would stay: %v", r.ledger.Good, err)
	case len(plan.Actions) > 0:
		r.record.Note("%s that states of %s made would stay; `corpus-agent rollback --converge --test` shows them",
			diag.Count(len(plan.Actions), "change"), r.ledger.Good)
	}
	return r.converge(ctx, target)
}

// neverDeployed returns the error of a rollback if nothing was deployed.
func (r *run) neverDeployed() error {
	what, first := "on this host", "corpus-agent deploy"
	if r.Alone != "" {
		what, first = "of "+r.Alone, "corpus-agent project deploy "+r.Alone
	}
	return exit.WithCode(exit.Usage,
		diag.Rollback.Hint(fmt.Errorf("nothing %s was deployed yet, so there is nothing to roll back", what),
			"deploy first: %s; corpus-agent why says what keeps it from that", first))
}
