package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/link"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// complete makes sure that the deployed pair is on the disk and that the links lead to it. It fetches missing releases
// again. In a run without a store the host continues with the newest earlier pair on the disk. fresh reports whether
// the directory of a release is new, so that its procedure install has to run.
func (r *run) complete(ctx context.Context) (fresh bool, err error) {
	good := *r.ledger.Runs()
	there, err := r.Held().Holds(good.Releases()...)
	if err != nil {
		return false, err
	}
	if !there {
		if err := r.releases.FetchAgain(ctx, good); err != nil {
			return false, r.settleFor(ctx, good, err)
		}
		fresh = true
		r.record.Note("a release of %s was missing on the disk and was fetched again", good)
	}
	if err := r.releases.RestoreLists(ctx, *r.ledger.Runs()); err != nil {
		return fresh, err
	}
	fresh = fresh || r.releases.AnyReplaced()
	runs := *r.ledger.Runs() // which may be an earlier pair now
	if r.linking.Complete(runs) {
		return fresh, nil
	}
	r.record.Note("the links were not those of %s, which is deployed; they are corrected", runs)
	return fresh, r.relink(ctx, runs)
}

// errGone is the error of a host that has no pair on the disk to converge.
var errGone = errors.New("a release of what is deployed is missing on the disk")

// settleFor continues with an earlier pair, which is neither quarantined nor withdrawn, if a release of the deployed
// pair is missing and cannot be fetched. Pairs that a rollback by hand has left come last.
func (r *run) settleFor(ctx context.Context, good ledger.Pair, cause error) error {
	for _, pair := range slices.Backward(slices.Concat(r.ledger.History, r.ledger.Before())) {
		_, bad := r.ledger.IsBad(pair)
		_, withdrawn := r.ledger.IsWithdrawn(pair)
		if bad || withdrawn || pair.Same(good) || !r.Held().Has(pair.Releases()...) {
			continue
		}
		r.record.Note("a release of %s is missing on the disk and was not fetched again (%v); this host keeps %s", good,
			cause, pair)
		r.ledger.StandIn(pair, r.Time().UTC())
		return r.relink(ctx, pair)
	}
	return diag.Changed.Hint(fmt.Errorf("%w: %s, and no earlier one is there: %w", errGone, good, cause),
		"the next run that reaches the store fetches it again: corpus-agent deploy")
}

// fetchDamagedAndConverge fetches damaged releases of the deployed pair again after it failed to converge, and
// converges it once more. Files may have been deleted, or lost in a power failure. If no release is damaged, it returns
// failure.
func (r *run) fetchDamagedAndConverge(ctx context.Context, failure error) error {
	if failure == nil || r.ledger.Failing != nil || r.ledger.Running != nil || !r.releases.Repair(ctx, *r.ledger.Runs()) {
		return failure
	}
	r.record.Note("it did not converge (%v), and converges again with the release fetched again", failure)
	return r.convergeGood(ctx)
}

// keepServing converges the deployed pair. If one of its units does not run it, before or after that, keepServing
// fetches releases again that differ from what was unpacked, such as by files that the unit's user can no longer read.
func (r *run) keepServing(ctx context.Context) error {
	runs := *r.ledger.Runs()
	if r.ledger.Failing != nil || r.ledger.Running != nil {
		return r.serving.StillServes(ctx, r.convergeGood(ctx))
	}
	if len(r.serving.UnservedBefore(ctx, runs)) > 0 {
		r.releases.Repair(ctx, runs)
	}
	err := r.serving.StillServes(ctx, r.fetchDamagedAndConverge(ctx, r.convergeGood(ctx)))
	if err != nil || len(r.report.Unserved) == 0 || !r.releases.Repair(ctx, runs) {
		return err
	}
	return r.serving.StillServes(ctx, r.convergeGood(ctx))
}

// relink points the links at a pair that was deployed before, and notes the units that do not run it.
func (r *run) relink(ctx context.Context, pair ledger.Pair) error {
	moving := r.serving.Moving(pair.Releases())
	if err := r.serving.NoteWrongUnits(ctx, pair); err != nil {
		r.record.Note("cannot determine which units do not run %s: %v", pair, err)
	}
	if err := r.linking.Link(pair); err != nil {
		return err
	}
	for _, release := range pair.Releases() {
		links := link.Of(r.LayoutOf(release.Project))
		now, err := links.Read()
		if err != nil {
			return fmt.Errorf("reading the links: %w", err)
		}
		now, _ = links.Reachable(now)
		now.Previous = cmp.Or(r.linking.PreviousDir(release), now.Previous)
		now.Next, now.Current = release.Dir(), release.Dir()
		if err := links.Restore(now); err != nil {
			return err
		}
	}
	for _, project := range moving {
		// A link that is repaired makes no process old: what was started since the deploy runs it.
		if r.ledger.Linked[project].Release != inspect.CurrentOf(r.LayoutOf(project)) {
			r.serving.NoteMoved(project)
		}
	}
	if s := r.ledger.Serving; s != nil && !s.Since.IsZero() {
		s.Since = r.Time().UTC()
	}
	return r.save()
}

// convergeGood converges the deployed pair, or base alone, after it has restored lost releases and links. If an earlier
// run was interrupted between the links and the units of its rollback, convergeGood finishes that rollback.
func (r *run) convergeGood(ctx context.Context) error {
	if !r.test && r.ledger.Failing == nil && r.ledger.Running == nil {
		fresh, err := r.complete(ctx)
		if err != nil {
			return err
		}
		converge := r.converge
		if fresh {
			converge = r.convergeAndInstall
		}
		restart, err := r.serving.FollowReplaced(ctx, *r.ledger.Runs())
		if err != nil {
			return err
		}
		switch s := r.ledger.Serving; {
		case restart:
			return r.serving.ConvergeAndServe(ctx, *r.ledger.Runs(), converge)
		case s != nil && !s.Since.IsZero():
			return r.serving.ConvergeAndRestart(ctx, *r.ledger.Runs(), converge)
		case fresh:
			return converge(ctx, *r.ledger.Runs())
		}
	}
	if r.ledger.Serving == nil || r.test {
		return r.converge(ctx, *r.ledger.Runs())
	}
	r.record.Note("%s", unfinishedUnits(*r.ledger.Serving))
	return r.settleDown(ctx, *r.ledger.Runs())
}

// unfinishedUnits describes why units are restarted although nothing new is deployed.
func unfinishedUnits(s ledger.Serving) string {
	if len(s.Retry) > 0 {
		return fmt.Sprintf("%s did not run what is deployed after the rollback of run %s; it is restarted again",
			strings.Join(s.Retry, ", "), s.Run)
	}
	return fmt.Sprintf("run %s was interrupted before all units ran what is deployed; they are restarted", s.Run)
}
