package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/journal"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/procedure"
	"github.com/corpus-agent/corpus-agent/agent/undo/recording"
	"github.com/corpus-agent/corpus-agent/state"
)

// maxAttempts is how often a deploy that is cut short is taken up again, and a way back that fails.
const maxAttempts = 3

// settleCut looks for a deploy that was cut short. One that was being rolled back is finished, and
// one that was cut too often is given up; otherwise it is left for this run to take up again. A pillar that another
// user could have changed ends the run before it does any of that.
func (r *run) settleCut(ctx context.Context) error {
	if err := r.CheckPillar(r.identity.Service); err != nil {
		return err
	}
	cut := r.ledger.Running
	if cut == nil || r.test {
		return nil
	}
	r.countCut(cut)
	switch {
	case r.goingBack(cut):
		r.record.Note("run %s was cut short while it rolled back; that is finished first", cut.Run)
	case r.cuts >= maxAttempts && r.ledger.Good != nil, cut.Reboots >= maxAttempts:
		r.giveUp(cut)
	default:
		r.record.Note("run %s was cut short while it deployed %s", cut.Run, cut.Pair)
		return r.undo.FinishPackages(ctx)
	}
	return r.finishBack(ctx, cut)
}

// finishBack goes the way back of a deploy that was cut short to its end, but for converging what is good.
func (r *run) finishBack(ctx context.Context, cut *ledger.Running) error {
	r.left, r.undo.Left = &cut.Pair, &cut.Pair
	r.serving.FollowBack(ctx, r.ledger.Runs())
	if err := r.restoreLinks(ctx, cut.Before); err != nil {
		return err
	}
	undone := r.undo.TakeBack(ctx, r.undo.Scope(cut))
	if undone != nil && !r.givesUp(ctx, cut, undone) {
		return exit.WithCode(exit.RollbackFailed, errors.Join(undone, r.save()))
	}
	if r.isQuarantined(cut.Pair) && !cut.Back { // a release that a person went back from did not fail
		r.keepFailed(cut.Pair)
	}
	r.ledger.Running = nil
	r.finished = &ledger.Unfinished{Pair: cut.Pair, Run: cut.Run, UndoTo: cut.UndoTo}
	if err := r.save(); undone == nil || err != nil {
		return errors.Join(undone, err)
	}
	if r.ledger.Runs() == nil {
		return r.stuckBack(undone)
	}
	// A host that waited for a person would get no more fixes until one comes. So what is good converges,
	// and this run fails.
	r.only = procedure.Only{}
	return r.stuckBack(errors.Join(undone, r.settleBack(ctx, *r.ledger.Runs())))
}

// goingBack reports whether a run that was cut short was on its way back.
func (r *run) goingBack(cut *ledger.Running) bool {
	return r.isQuarantined(cut.Pair) || cut.Back || cut.Failed
}

// countCut finds out in which step a deploy was cut short last, and how often in a row that was in this
// step. Cuts at different steps, or before a run changed anything, are chance: the power fails, and no release
// is to blame. A release whose step takes the host down is cut short in that step each time. Where nothing
// records the steps, every cut counts.
func (r *run) countCut(cut *ledger.Running) {
	if !r.recordsSteps() {
		r.cutStep, r.cuts = "", cut.Attempts
		return
	}
	switch r.cutStep = cmp.Or(cut.EndedIn, r.lastStep(cut.Run)); r.cutStep {
	case "":
		r.cuts = 0
	default:
		r.cuts = 1
		if journal.Same(r.cutStep, cut.Step) {
			r.cuts = cut.Cuts + 1
		}
	}
}

// recordsSteps reports whether the journal says which step of a converge changes the host.
func (r *run) recordsSteps() bool {
	_, native := r.Engine.(state.Native)
	return (native || r.Engine == nil && r.Config.Engine == "native") && r.Journal().Limit > 0
}

// lastStep is the state, or the hooks, that a run was at work on when it changed something last; "" where it
// changed nothing. What a damaged journal means is decided where the way back reads it.
func (r *run) lastStep(id string) string {
	h, err := r.StateHost()
	if err != nil {
		return ""
	}
	last, err := r.Journal().Last()
	if err != nil || last == nil {
		return ""
	}
	return last.InterruptedStep(id, h)
}

// giveUp quarantines the release whose deploy was cut short too often: the host may not survive it.
func (r *run) giveUp(cut *ledger.Running) {
	reason := fmt.Sprintf("its deploy was cut short %d times", r.cuts)
	if r.cutStep != "" {
		reason += " in a row in " + r.cutStep
	}
	if cut.Reboots >= maxAttempts {
		reason = fmt.Sprintf("its deploy ended %d times in a reboot, or in an end of the run that a state asked for",
			cut.Reboots)
	}
	if guilty := r.guilty(cut.Pair, ""); guilty != nil {
		r.record.Note("%s is quarantined: %s", guilty, reason)
		r.quarantine(cut.Pair, *guilty, cut.Run, reason)
	}
	cut.Failed, cut.Attempts, cut.Reboots, cut.Cuts = true, 0, 0, 0 // from here on, attempts of the way back
}

// givesUp reports whether a rollback that failed is not tried again by the next run: nothing is put back from a
// journal that something else has changed, and changes that could not be put back may never be. A person has to
// look then; the pair that was left is recorded with the reason.
func (r *run) givesUp(ctx context.Context, cut *ledger.Running, undone error) bool {
	var damaged *journal.Damaged
	var newer *journal.Newer
	switch {
	case stopped(ctx):
		return false
	case errors.As(undone, &damaged), errors.As(undone, &newer):
	case errors.Is(undone, recording.ErrIncomplete):
		if cut.Attempts++; cut.Attempts <= maxAttempts {
			return false
		}
	default:
		return false // a disk that fails, which another time may not
	}
	r.noteLeft(cut.Pair)
	return true
}

// cutDeploy is the deploy of another pair than the deployed one that was cut short; nil for none. A rollback by hand
// that was cut short is none: it goes to the pair that is to run.
func (r *run) cutDeploy() *ledger.Running {
	cut, good := r.ledger.Running, r.ledger.Good
	if cut == nil || good == nil || cut.Back || cut.Leaves != nil || cut.Pair.Same(*good) {
		return nil
	}
	return cut
}

// leaveCut is settleCut for a rollback by hand to a version, a run or, for "", the pair before. A deploy that was cut
// short is not taken up again: it is rolled back, and its releases are quarantined as those are from which a person
// goes back. What was good before that deploy is still what the ledger calls deployed, and the links may lead
// elsewhere: the rollback goes no further back. find looks for where to go, so that a mistake in that changes nothing.
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
	r.record.Note("run %s was cut short while it deployed %s; the host goes back to %s, which was deployed before",
		cut.Run, cut.Pair, r.ledger.Good)
	r.acted, r.report.Leaves = true, &cut.Pair
	r.quarantineByHand(cut.Pair)
	cut.Failed, cut.Attempts, cut.Reboots, cut.Cuts = true, 0, 0, 0 // from here on, attempts of the way back
	if err := r.save(); err != nil {
		return err
	}
	return r.finishBack(ctx, cut)
}

// quarantineByHand quarantines the releases of a pair that a person goes back from, and that are not good.
func (r *run) quarantineByHand(pair ledger.Pair) {
	for _, release := range pair.Releases() {
		if !r.ledger.Good.Has(release) {
			r.quarantine(pair, release, r.id, ledger.ByHand)
		}
	}
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
	r.record.Note("the rollback of run %s to %s is finished; to go back further: corpus-agent rollback --to VERSION",
		r.finished.Run, good)
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
