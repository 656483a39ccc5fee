package agent

import (
	"cmp"
	"context"
	"errors"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/journal"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/procedure"
	"github.com/corpus-agent/corpus-agent/agent/undo/recording"
	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// maxAttempts is how often the agent resumes an interrupted deploy, and how often it retries a rollback that failed.
const maxAttempts = 3

// settleInterrupted decides about a deploy that an earlier run left unfinished. It finishes one that was being rolled
// back, gives up one that was interrupted too often, and rolls back one of another pair on a host that is held. This
// run resumes any other. A pillar that another user could have changed ends the run before that.
func (r *run) settleInterrupted(ctx context.Context) error {
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
		r.record.Note("run %s was interrupted while it rolled back; that is finished first", cut.Run)
	case r.cuts >= maxAttempts && r.ledger.Good != nil, cut.Reboots >= maxAttempts:
		r.giveUp(cut)
	case r.ledger.Hold != nil && r.interruptedDeploy() != nil:
		r.record.Note("run %s was interrupted while it deployed %s; this host is held since %s, so it goes back to %s",
			cut.Run, cut.Pair, diag.Stamp(r.ledger.Hold.Since), r.ledger.Good)
		r.acted = true
		if err := r.abandon(cut); err != nil {
			return err
		}
	default:
		r.record.Note("run %s was interrupted while it deployed %s", cut.Run, cut.Pair)
		return r.undo.FinishPackages(ctx)
	}
	return r.finishBack(ctx, cut)
}

// finishBack finishes the rollback of an interrupted deploy: it restores the links and undoes changes. The good pair
// converges after that.
func (r *run) finishBack(ctx context.Context, cut *ledger.Running) error {
	r.left, r.undo.Left = &cut.Pair, &cut.Pair
	r.serving.FollowBack(ctx, r.ledger.Runs())
	if err := r.linking.Restore(ctx, cut.Before); err != nil {
		return err
	}
	undone := r.takeBack(ctx, r.undo.Scope(cut), cut.Before)
	if undone != nil && !r.givesUp(ctx, cut, undone) {
		return exit.WithCode(exit.RollbackFailed, errors.Join(undone, r.save()))
	}
	if r.quarantine.Has(cut.Pair) && !cut.Back { // a release that a person went back from did not fail
		r.retention.KeepFailed(cut.Pair)
	}
	r.ledger.Running = nil
	r.finished = &ledger.Unfinished{Pair: cut.Pair, Run: cut.Run, UndoTo: cut.UndoTo}
	if err := r.save(); undone == nil || err != nil {
		return errors.Join(undone, err)
	}
	if r.ledger.Runs() == nil {
		return r.stuckBack(undone)
	}
	// A host that only waited for a person would get no fixes until then. So the good pair converges, and the run
	// fails.
	r.only = procedure.Only{}
	return r.stuckBack(errors.Join(undone, r.settleBack(ctx, *r.ledger.Runs())))
}

// goingBack reports whether a run was interrupted during its rollback.
func (r *run) goingBack(cut *ledger.Running) bool {
	return r.quarantine.Has(cut.Pair) || cut.Back || cut.Failed
}

// countCut finds the step in which a deploy was interrupted last, and counts how often in a row it was interrupted in
// that step. A release whose step makes the host crash or reboot is interrupted in that step each time. Interruptions
// in different steps, or before a run changed anything, have other causes, such as a power failure, and do not count
// against the release. If no journal records the steps, every interruption counts.
func (r *run) countCut(cut *ledger.Running) {
	if !r.recordsSteps() {
		r.interruptedStep, r.cuts = "", cut.Attempts
		return
	}
	switch r.interruptedStep = cmp.Or(cut.EndedIn, r.lastStep(cut.Run)); r.interruptedStep {
	case "":
		r.cuts = 0
	default:
		r.cuts = 1
		if journal.Same(r.interruptedStep, cut.Step) {
			r.cuts = cut.Cuts + 1
		}
	}
}

// recordsSteps reports whether the journal says which step of a converge changes the host.
func (r *run) recordsSteps() bool {
	return r.isNative() && r.Journal().Limit > 0
}

func (r *run) isNative() bool {
	_, native := r.Engine.(state.Native)
	return native || r.Engine == nil && r.Config.Engine == "native"
}

// lastStep returns the state, or the stage of hooks, that made the last change of a run; "" if the run changed nothing.
// It ignores damage of the journal, which the rollback reports.
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

// giveUp quarantines the release whose deploy was interrupted too often, since its states may bring the host down.
func (r *run) giveUp(cut *ledger.Running) {
	reason := "its deploy was interrupted " + diag.Count(r.cuts, "time")
	if r.interruptedStep != "" {
		reason += " in a row in " + r.interruptedStep
	}
	if cut.Reboots >= maxAttempts {
		reason = "its deploy ended " + diag.Count(cut.Reboots, "time") + " in a reboot, or by a state that ended the run"
	}
	if guilty := r.fault.Release(cut.Pair, ""); guilty != nil {
		r.record.Note("%s is quarantined: %s", guilty, reason)
		r.quarantine.Add(cut.Pair, *guilty, cut.Run, reason)
	}
	cut.Failed, cut.Attempts, cut.Reboots, cut.Cuts = true, 0, 0, 0 // from here on, attempts of the rollback
}

// givesUp reports whether the next run does not retry a rollback that failed. Nothing is restored from a journal that
// is damaged or newer than the agent, and changes that repeatedly could not be undone are left. The ledger records the
// pair that was left and the reason, for a person.
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
		return false // the disk failed, and may not fail the next time
	}
	r.quarantine.NoteLeft(cut.Pair)
	return true
}

// interruptedDeploy returns an interrupted deploy of another pair than the deployed one; nil if there is none. An
// interrupted rollback by hand does not count, since its pair is the one that is to run.
func (r *run) interruptedDeploy() *ledger.Running {
	cut, good := r.ledger.Running, r.ledger.Good
	if cut == nil || good == nil || cut.Back || cut.Leaves != nil || cut.Pair.Same(*good) {
		return nil
	}
	return cut
}

// leaveInterrupted is settleInterrupted for a rollback by hand to a version, to a run or, for "", to the previous pair.
// It rolls an interrupted deploy back instead of resuming it, and quarantines its releases as every rollback by hand
// does. In the ledger the pair before that deploy is still the deployed one, so the rollback goes no further back. It
// calls find to resolve to before anything changes, so that a mistake in it changes nothing.
func (r *run) leaveInterrupted(ctx context.Context, to string, find func(to string) error) error {
	cut := r.interruptedDeploy()
	if cut == nil || r.test || r.goingBack(cut) {
		return r.settleInterrupted(ctx)
	}
	if err := r.CheckPillar(r.identity.Service); err != nil {
		return err
	}
	if to != "" {
		if err := find(to); err != nil {
			return exit.WithCode(exit.Usage, err)
		}
	}
	r.record.Note("run %s was interrupted while it deployed %s; the host goes back to %s, which was deployed before",
		cut.Run, cut.Pair, r.ledger.Good)
	r.acted, r.report.Leaves = true, &cut.Pair
	r.quarantine.AddByHand(cut.Pair)
	if err := r.abandon(cut); err != nil {
		return err
	}
	return r.finishBack(ctx, cut)
}

// abandon records that an interrupted deploy is rolled back from here on, also by later runs.
func (r *run) abandon(cut *ledger.Running) error {
	cut.Failed, cut.Attempts, cut.Reboots, cut.Cuts = true, 0, 0, 0 // from here on, attempts of the rollback
	return r.save()
}

// unlessGood returns the version to go back to. While a deploy or its rollback is interrupted, the version of the
// deployed pair means the same as "": that rollback leads to it.
func (r *run) unlessGood(version string) string {
	cut := r.ledger.Running
	if cut != nil && (r.interruptedDeploy() != nil || r.goingBack(cut)) && r.ledger.Good != nil &&
		r.ledger.Good.Is(version) {
		return ""
	}
	return version
}

// askedBefore returns the pair to which an interrupted rollback by hand leads; nil if there is none.
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

// stayBack ends a rollback by hand that has finished the interrupted rollback of another run. It goes no further back,
// since that would leave the pair to which the interrupted rollback led.
func (r *run) stayBack(ctx context.Context) error {
	good := *r.ledger.Good
	r.acted, r.report.To = true, &good
	r.record.Note("the rollback of run %s to %s is finished; to go back further: corpus-agent rollback --to VERSION",
		r.finished.Run, good)
	return r.stuckBack(r.settleBack(ctx, good))
}

// showStayBack performs the dry run of stayBack, and of the rollback that comes before it.
func (r *run) showStayBack(ctx context.Context, left ledger.Pair) error {
	good := *r.ledger.Good
	r.report.To = &good
	r.record.Note("would undo the deploy of %s, which was interrupted, and stay on %s", left, good)
	r.quarantine.Show(left, good)
	r.showActs(ctx, good)
	return r.converge(ctx, good)
}
