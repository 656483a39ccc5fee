package recording

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/journal"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/undo"
	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/image"
)

// Between returns the changes that a rollback from a pair to another undoes. over is the pair that from replaced last;
// nil if that is not known.
func (r *Run) Between(from, to ledger.Pair, over *ledger.Pair) undo.Scope {
	s := undo.Scope{From: from.Key(), To: to.Key(), First: r.Ledger.FirstRun(to.Key()), Sequence: r.Host.RunSequence()}
	if over != nil {
		s.Over = over.Key()
	}
	return s
}

// Scope returns the changes that an interrupted rollback was to undo.
func (r *Run) Scope(cut *ledger.Running) undo.Scope {
	s := undo.Scope{From: cut.Pair.Key()}
	if runs := r.Ledger.Runs(); runs != nil && cut.Back { // of a rollback by hand the ledger has no pair before cut.Pair
		s = r.Between(cut.Pair, *runs, nil)
	} else if runs != nil {
		s = r.Between(cut.Pair, *runs, runs)
	}
	s.Run, s.Sequence = cut.UndoTo, r.Host.RunSequence()
	return s
}

// TakeBack undoes the recorded changes in a scope, and reports what it did.
func (r *Run) TakeBack(ctx context.Context, s undo.Scope) error {
	if err := r.Close(); err != nil {
		return err
	}
	plan, h, err := r.Plan(ctx, s)
	if err != nil {
		return err
	}
	if plan.Done() {
		r.noteUnfinished(s, false)
		return nil
	}
	var did undo.Summary
	err = r.Record.Stage("undo", "", func() error {
		did, err = undo.Restore(ctx, h, r.Host.Journal(), r.ID, plan)
		return errors.Join(err, r.incomplete(did))
	})
	if err == nil || errors.Is(err, ErrIncomplete) {
		r.noteUnfinished(s, did.Unfinished)
	}
	r.report(did)
	return err
}

// noteUnfinished records in the ledger whether changes of the pair that is left are still to be undone, so that a later
// rollback undoes them first.
func (r *Run) noteUnfinished(s undo.Scope, unfinished bool) {
	l := r.Ledger
	switch {
	case s.Only != "":
	case unfinished && r.Left != nil && l.Good != nil:
		l.Unfinished = &ledger.Unfinished{Pair: *r.Left, Run: r.ID, UndoTo: s.Run}
	case !unfinished && l.Unfinished != nil &&
		(s.From.Same(l.Unfinished.Pair.Key()) || s.Run != "" && s.Run == l.Unfinished.UndoTo):
		l.Unfinished = nil
	}
}

// Plan returns the plan of what TakeBack would undo.
func (r *Run) Plan(ctx context.Context, s undo.Scope) (*undo.Plan, *host.Host, error) {
	h, err := r.Host.StateHost()
	if err != nil {
		return nil, nil, err
	}
	j := r.Host.Journal()
	chapters, readErr := j.Chapters()
	if len(chapters) > 0 && !r.Test {
		image.Finish(ctx, h)
		if err := journal.Settle(j, chapters[len(chapters)-1], h); err != nil {
			return nil, nil, err
		}
	}
	records, short := undo.Select(chapters, s)
	if readErr != nil && (short || len(chapters) == 0) {
		return nil, nil, readErr
	}
	if short {
		r.Record.Note("the journal does not reach back far enough; older changes stay")
	}
	plan, err := undo.NewPlan(ctx, h, chapters, records)
	return plan, h, err
}

// FinishPackages finishes what an interruption left unfinished in the package manager, so that the release that is
// deployed again is not blamed for that.
func (r *Run) FinishPackages(ctx context.Context) error {
	h, err := r.Host.StateHost()
	if err == nil {
		image.Finish(ctx, h)
	}
	return err
}

// ErrIncomplete is the error of TakeBack if some changes could not be undone.
var ErrIncomplete = errors.New("not everything could be undone")

// incomplete returns an ErrIncomplete that lists what failed; nil if nothing did.
func (r *Run) incomplete(did undo.Summary) error {
	if len(did.Failed) == 0 {
		return nil
	}
	err := fmt.Errorf("%w: %s", ErrIncomplete, undo.Lines(did.Failed))
	then := "and run: corpus-agent rollback --converge"
	if r.Ledger.Good == nil { // there is no pair that a rollback would return to
		then = "undo it by hand, and run: corpus-agent deploy"
	}
	for _, f := range did.Failed {
		if !strings.HasPrefix(f.Subject, string(host.KindPackage)+" ") {
			return diag.Journal.Hint(err, "correct what they name, %s", then)
		}
	}
	return diag.Packages.Hint(err, "correct what they name, %s", then)
}

// report adds to the report what was undone. It omits units that follow the links and were restarted or crashed since,
// because they are restarted after that.
func (r *Run) report(did undo.Summary) {
	if serving := r.Ledger.Serving; serving != nil {
		did.Left = structsort.Without(did.Left, func(l undo.Left) bool {
			unit, isUnit := strings.CutPrefix(l.Subject, "unit ")
			return isUnit && l.Changed && slices.Contains(serving.Units, unit)
		})
	}
	r.Record.Complete(func(rep *report.Report) { rep.Undo = &did })
	r.Record.Note(
		"undone: %s; left unchanged: %d; restarted: %d",
		diag.Count(len(did.Restored), "change"),
		len(did.Left),
		len(did.Restarted),
	)
	for _, l := range did.Left {
		r.Record.Note("left: %s", l)
	}
}
