package agent

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/link"
	"github.com/corpus-agent/corpus-agent/agent/project"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/undo"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// RollbackConverge undoes what converging changed, and then goes back to the pair that ran before. to is the ID of the
// last run whose changes stay, or a version as for RollbackTo. If test is set, it only shows what would change.
func (a *Agent) RollbackConverge(ctx context.Context, to string, test bool) (*report.Report, error) {
	return a.pass(ctx, "rollback", test, func(r *run) error {
		if err := r.identify(ctx, grains.Identity{}); err != nil {
			return err
		}
		if !test {
			if err := r.Unwritable(); err != nil { // without room for the ledger the rollback could not be finished, nor resumed
				return err
			}
		}
		to := r.unlessGood(to)
		if err := r.leaveInterrupted(ctx, to, func(to string) error { _, err := r.wayBack(to); return err }); err != nil {
			return err
		}
		w, err := r.wayBack(to)
		if err != nil {
			return exit.WithCode(exit.Usage, err)
		}
		// If the pair stays, and only changes of later runs are undone, no other release is deployed.
		if err := r.withdrawn(w.target); err != nil && !w.target.Same(w.left) {
			return err
		}
		if err := r.releases.Verify(ctx, w.target); err != nil && !w.target.Same(w.left) {
			return err
		}
		r.report.To = &w.target
		if test {
			return r.showWayBack(ctx, w)
		}
		return r.goBackConverged(ctx, w)
	})
}

// wayBack describes a rollback by hand that undoes what converging changed.
type wayBack struct {
	left, target ledger.Pair
	from         ledger.Pair // the pair whose changes are undone: left, or one that an earlier rollback left
	scope        undo.Scope
	pending      bool // an earlier rollback to the target was not finished
}

// wayBackTo returns the rollback from a pair to another, for one that no person asked for.
func (r *run) wayBackTo(left, target ledger.Pair) wayBack {
	return wayBack{left: left, target: target, from: left, scope: r.undo.Between(left, target, r.replacedBy(left))}
}

// replacedBy returns the pair that a pair which runs now replaced; nil if that is not known.
func (r *run) replacedBy(pair ledger.Pair) *ledger.Pair {
	if r.ledger.Good.Same(pair) {
		return r.ledger.Previous
	}
	return r.ledger.Good // the pair failed, and a dev host stayed on it
}

// isRun matches the ID of a run.
var isRun = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\d{8}T\d{6}\.\d{6}$`) })

// wayBack finds the pair to go back to and the changes to undo.
func (r *run) wayBack(to string) (w wayBack, err error) {
	if r.ledger.Good == nil {
		return w, inspect.ErrNothingDeployed()
	}
	w.left = *r.ledger.Good
	if r.ledger.Failing != nil {
		w.left = *r.ledger.Failing
	}
	w.from = w.left
	unfinished := r.toFinish()
	switch {
	case isRun().MatchString(to):
		if w.target, err = r.leftBy(to); err != nil {
			return w, err
		}
		w.scope = undo.Scope{Run: to, Sequence: r.RunSequence()}
		return w, nil
	case to == "" && unfinished != nil:
		w.target, w.from, w.pending = w.left, unfinished.Pair, true
		w.scope = r.undo.Between(w.from, w.target, nil)
		w.scope.Run = unfinished.UndoTo
		return w, nil
	case to == "" && r.ledger.Failing == nil && r.unfinished():
		w.target, w.pending = w.left, true
	default:
		if w.target, err = r.earlier(to); err != nil {
			return w, err
		}
	}
	w.scope = r.undo.Between(w.left, w.target, r.replacedBy(w.left))
	return w, nil
}

// toFinish returns an earlier rollback to the deployed pair that a rollback without a target finishes, or has finished;
// nil if there is none. Going further back would leave a release that works.
func (r *run) toFinish() *ledger.Unfinished {
	cut := r.ledger.Running
	switch {
	case r.ledger.Failing != nil || r.ledger.Good == nil:
		return nil
	case r.finished != nil:
		return r.finished
	case cut != nil && (r.goingBack(cut) || r.interruptedDeploy() != nil): // a dry run, which finishes nothing
		return &ledger.Unfinished{Pair: cut.Pair, Run: cut.Run, UndoTo: cut.UndoTo}
	}
	return r.ledger.Unfinished
}

// unfinished reports whether the journal still has changes of a pair that was left.
func (r *run) unfinished() bool {
	chapters, err := r.Journal().Chapters()
	if err != nil && len(chapters) == 0 {
		return false
	}
	records, _ := undo.Select(chapters, undo.Scope{To: r.ledger.Good.Key()})
	return len(records) > 0
}

// leftBy returns the pair that was deployed at the end of a run.
func (r *run) leftBy(id string) (ledger.Pair, error) {
	rep, err := r.Reports().Load(id)
	if err != nil {
		return ledger.Pair{}, err
	}
	if rep.Left == nil {
		return ledger.Pair{}, diag.Rollback.Hint(
			fmt.Errorf("run %s left nothing deployed, so there is nothing to go back to", id),
			"`corpus-agent history` lists the runs")
	}
	if !r.Held().Has(rep.Left.Releases()...) {
		return ledger.Pair{}, diag.Rollback.Hint(fmt.Errorf("%s, which run %s left, is not on this host any more",
			rep.Left, id), "promote that version to its channel, or go back to a later run")
	}
	return *rep.Left, nil
}

// showWayBack shows what would change as differences.
func (r *run) showWayBack(ctx context.Context, w wayBack) error {
	plan, h, err := r.undo.Plan(ctx, w.scope)
	if err != nil {
		return exit.WithCode(exit.RollbackFailed, err)
	}
	var text strings.Builder
	for _, d := range plan.Differences(h) {
		text.WriteString(d.String())
	}
	did := plan.Summary()
	for _, unit := range did.Restarted {
		fmt.Fprintf(&text, "# unit %s: it would be restarted\n", unit)
	}
	for _, l := range did.Left {
		fmt.Fprintf(&text, "# left unchanged: %s\n", l)
	}
	r.record.Complete(func(rep *report.Report) { rep.Undo = &did })
	if text.Len() == 0 {
		r.record.Note("the journal has nothing to undo")
	}
	r.record.Output(text.String())
	switch {
	case !w.target.Same(w.left):
		r.record.Note("would go back to %s", w.target)
		r.quarantine.Show(w.left, w.target)
		r.showActs(ctx, w.target)
		r.record.Note("the states of %s would run after that", w.target)
	case !w.from.Same(w.left):
		r.record.Note("would undo what is left of %s; %s would stay deployed", w.from, w.target)
	}
	return nil
}

// goBackConverged rolls the host back. It writes the ledger first: an interruption after that is found by the next run,
// which finishes the rollback.
func (r *run) goBackConverged(ctx context.Context, w wayBack) error {
	if err := r.balance.Leave(ctx, w.target); err != nil {
		return err
	}
	r.acted = true
	links, err := r.linking.Of(w.target)
	if err != nil {
		return err
	}
	here, err := r.here(w.left)
	if err != nil {
		return err
	}
	if !w.target.Same(w.left) {
		r.report.Leaves = &w.left
		r.ledger.WentBack(w.target, r.Time().UTC())
		r.quarantine.Leave(w.left)
	}
	if !w.from.Same(w.left) {
		r.record.Note("what is left of %s is undone; %s stays deployed", w.from, w.target)
	}
	r.ledger.Running = r.underWay(w.from)
	r.ledger.Running.Before, r.ledger.Running.Back, r.ledger.Running.UndoTo = links, true, w.scope.Run
	r.left, r.undo.Over, r.undo.Left = &w.from, &w.from, &w.from
	r.serving.FollowBack(ctx, &w.target)
	err = r.record.Stage("roll back", w.target.String(),
		func() error { return errors.Join(r.save(), r.linking.Restore(ctx, links)) })
	if err != nil {
		return r.stuckBack(err)
	}
	if !w.target.Same(w.left) {
		r.linking.PointPrevious(w.target)
	}
	undone := r.takeBack(ctx, w.scope, links)
	if stopped(ctx) {
		return exit.WithCode(exit.Interrupted, errors.New("interrupted; the next run finishes the rollback"))
	}
	if !w.target.Same(w.left) {
		r.linking.PointPrevious(w.target)
	}
	if undone != nil {
		r.quarantine.NoteLeft(w.from)
	}
	r.ledger.Running = nil
	if err := r.save(); err != nil {
		return r.stuckBack(errors.Join(undone, err))
	}
	if w.target.Same(w.left) && !w.pending {
		r.record.Note("%s stays deployed, so the next converge brings its states again", w.target)
		return r.stuckBack(undone)
	}
	err = r.settleDown(ctx, w.target)
	if err != nil && undone == nil && !w.target.Same(w.left) && r.returns(ctx, w.left) {
		return r.backAgain(ctx, w, here, err)
	}
	return r.stuckBack(errors.Join(undone, err))
}

// here holds the ledger and the links from before a rollback.
type here struct {
	ledger ledger.Ledger
	links  map[string]link.Set
}

// here returns the current ledger, and the links of the projects of a pair.
func (r *run) here(pair ledger.Pair) (here, error) {
	was := *r.ledger
	was.Bad, was.History = slices.Clone(was.Bad), slices.Clone(was.History)
	links := map[string]link.Set{}
	for _, release := range pair.Releases() {
		s, err := link.Of(r.LayoutOf(release.Project)).Read()
		if err != nil {
			return here{}, fmt.Errorf("reading the links: %w", err)
		}
		links[release.Project] = s
	}
	return here{was, links}, nil
}

// returns reports whether the host returns to left after a rollback by hand failed. A dev host stays where a person has
// put it, and a run that was asked to end leaves the rest to the next run.
func (r *run) returns(ctx context.Context, left ledger.Pair) bool {
	return !r.ending(ctx) && r.project.Environment() != project.Dev && r.Held().Has(left.Releases()...)
}

// backAgain returns to the pair that a person went back from, since the target of the rollback does not work. It takes
// that pair out of quarantine, and the failed one is quarantined.
func (r *run) backAgain(ctx context.Context, w wayBack, was here, cause error) error {
	l := r.ledger
	l.Good, l.Since, l.Previous, l.StandsFor = was.ledger.Good, was.ledger.Since, was.ledger.Previous, was.ledger.StandsFor
	l.Bad, l.History = was.ledger.Bad, was.ledger.History
	l.Running = r.underWay(w.target)
	l.Running.Before = was.links
	r.undo.Over = nil
	return r.back(ctx, w.target, was.links, cause)
}
