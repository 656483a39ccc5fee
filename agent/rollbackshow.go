package agent

import (
	"context"
	"errors"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/hook"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/procedure"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/undo"
	"github.com/corpus-agent/corpus-agent/grains"
)

// ShowRollback is the dry run of RollbackTo: it shows the pair to go back to, what would be quarantined and restarted, and what
// its states would change.
func (a *Agent) ShowRollback(ctx context.Context, version string) (*report.Report, error) {
	return a.pass(ctx, "rollback", true, func(r *run) error {
		if r.ledger.Good == nil {
			return r.neverDeployed()
		}
		if err := r.identify(ctx, grains.Identity{}); err != nil {
			return err
		}
		if err := r.settleCut(ctx); err != nil {
			return err
		}
		version := r.unlessGood(version)
		if cut := r.ledger.Running; cut != nil && version == "" && r.ledger.Failing == nil && (r.goingBack(cut) || r.cutDeploy() != nil) {
			return r.showStayBack(ctx, cut.Pair)
		}
		target, err := r.earlier(version)
		if err != nil {
			return exit.WithCode(exit.Usage, err)
		}
		if err := errors.Join(r.withdrawn(target), r.asUnpacked(ctx, target)); err != nil {
			return err
		}
		return r.showRollback(ctx, target)
	})
}

func (r *run) showRollback(ctx context.Context, target ledger.Pair) error {
	r.report.To = &target
	r.record.Note("would go back to %s", target)
	r.showQuarantine(*r.ledger.Good, target)
	r.showActs(ctx, target)
	plan, _, err := r.undo.Plan(ctx, undo.Scope{From: r.ledger.Good.Key(), To: target.Key()})
	switch {
	case err != nil:
		r.record.Note("what stays of the states of %s was not found out: %v", r.ledger.Good, err)
	case len(plan.Actions) > 0:
		r.record.Note("%d changes that states of %s made are not taken back; `corpus-agent rollback --converge --test` shows them", len(plan.Actions), r.ledger.Good)
	}
	return r.converge(ctx, target)
}

// showActs notes what a run would do besides its states to make the host run a pair: the hooks and the restarts.
func (r *run) showActs(ctx context.Context, target ledger.Pair) {
	if hooks := r.hooksToRun(target); len(hooks) > 0 {
		r.record.Note("would run the hooks %s", strings.Join(hooks, ", "))
	}
	pairs := []ledger.Pair{target}
	if runs := r.ledger.Runs(); runs != nil {
		pairs = []ledger.Pair{*runs, target}
	}
	if units := r.serving.UnitsToFollow(ctx, pairs...); len(units) > 0 {
		r.record.Note("would restart %s, as far as they run another release then", strings.Join(units, ", "))
	}
}

// hooksToRun are the hooks of a pair's release that a run starts, each with its stage.
func (r *run) hooksToRun(pair ledger.Pair) (all []string) {
	if !r.only.Has(procedure.Hooks) || pair.BaseAlone() || r.Layout.Relocated() && !r.Chroot {
		return nil
	}
	service, _ := r.PairDirs(pair)
	for _, stage := range []string{preRelease, postRelease} {
		names, err := hook.List(r.Layout.Path(layout.Hooks(service, stage)))
		if err != nil {
			r.record.Note("the %s hooks would fail: %v", stage, err)
		}
		for _, name := range names {
			all = append(all, stage+" "+name)
		}
	}
	return all
}
