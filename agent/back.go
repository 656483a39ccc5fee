package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/failure"
	"github.com/corpus-agent/corpus-agent/agent/fault"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/link"
	"github.com/corpus-agent/corpus-agent/agent/procedure"
	"github.com/corpus-agent/corpus-agent/agent/project"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/agent/undo"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// ending reports whether this run was asked to end, or the host is shutting down. Errors after that are not faults of
// the release or of the host.
func (r *run) ending(ctx context.Context) bool { return stopped(ctx) || r.ShuttingDown(ctx) }

// back ends a deploy that failed. It rolls the host back to the last good pair. After a failed first deploy nothing is
// current, and a dev host stays on the failed release.
func (r *run) back(ctx context.Context, pair ledger.Pair, before map[string]link.Set, cause error) error {
	if !r.ending(ctx) {
		cause = failure.Unexecuted(r.Layout, r.serving.ExplainPorts(ctx, pair, cause))
	}
	f := r.fault.Find(ctx, pair, cause)
	switch {
	case f.Of == report.FaultOfInterruption:
		return r.interrupted(ctx, before, cause)
	case r.project.Environment() == project.Dev && !pair.BaseAlone():
		return r.stayForward(pair, before, cause)
	case r.ledger.Good == nil && (r.ledger.Alone == nil || !pair.BaseAlone()):
		return r.firstFailed(ctx, pair, before, cause)
	}
	return r.rollBack(ctx, pair, before, f)
}

// interrupted restores the links, and the units that had followed them, and blames no release: the next run starts
// over. If the host shuts down, or a state ended the run, the ledger keeps the deploy, so that later runs detect a
// release that does so each time.
func (r *run) interrupted(ctx context.Context, before map[string]link.Set, cause error) error {
	r.record.Complete(func(rep *report.Report) { rep.Fault = &report.Fault{Of: report.FaultOfInterruption} })
	r.serving.FollowBack(ctx, r.ledger.Runs())
	err := r.linking.Restore(ctx, before)
	switch good := r.ledger.Runs(); {
	case err != nil || r.ShuttingDown(ctx): // its next boot starts units through the links as they are now
	case good != nil && r.ledger.Serving != nil:
		err = r.serving.ServeBack(ctx, *good)
	case good == nil:
		err = r.serving.StopStarted(ctx)
	}
	if err == nil {
		err = r.saveInterrupted(ctx)
	}
	if err != nil {
		return r.stuck(cause, err)
	}
	return exit.WithCode(exit.Interrupted, diag.Run.Hint(errors.New("interrupted; the links are as they were before"),
		"the next run takes the deploy up again: corpus-agent deploy; a signal ended this one, as of `systemctl stop`, a "+
			"shutdown or Ctrl-C: journalctl -u corpus-agent.service"))
}

// saveInterrupted keeps the attempt in the ledger if a reboot, or an end that a state asked for, interrupted it.
func (r *run) saveInterrupted(ctx context.Context) error {
	if r.ownStop.Load() || r.ShuttingDown(ctx) {
		r.ledger.Running.Reboots++
		r.ledger.Running.EndedIn = r.endedIn
	} else {
		r.ledger.Running = nil
	}
	return r.save()
}

// firstFailed ends a first deploy that failed. It leaves next on the failed release, for inspection, and nothing
// current except a base that converged alone before. The release is not quarantined: the host has nothing else to run,
// so the next run tries it again.
func (r *run) firstFailed(ctx context.Context, pair ledger.Pair, before map[string]link.Set, cause error) error {
	err := r.linking.Restore(ctx, before)
	failed := pair.Own()
	project := r.LayoutOf(failed.Project)
	if err == nil {
		err = link.Of(project).Restore(link.Set{Next: failed.Dir()})
	}
	err = errors.Join(err, r.serving.StopStarted(ctx))
	scope := undo.Scope{From: pair.Key()}
	if base := r.ledger.Alone; base != nil {
		scope = r.undo.Between(pair, *base, base)
	}
	links := maps.Clone(before)
	links[failed.Project] = link.Set{Next: failed.Dir()}
	undone := r.takeBack(ctx, scope, links)
	r.ledger.Running = nil
	if err := errors.Join(err, undone, r.save()); err != nil {
		return r.stuck(cause, err)
	}
	r.record.Note("this was the first deploy, so there is nothing to roll back to; %s/next leads to the release "+
		"that failed", r.Layout.Inside(project.Dir))
	if base := r.ledger.Alone; base != nil {
		if err := r.settleBack(ctx, *base); err != nil {
			return r.stuck(cause, err)
		}
	}
	return exit.WithCode(exit.Failed, cause)
}

// stayForward keeps a dev host on the release that failed, for its developer to correct it: a dev environment does not
// roll back by itself, and the next run tries again.
func (r *run) stayForward(pair ledger.Pair, before map[string]link.Set, cause error) error {
	r.ledger.Running, r.ledger.Failing, r.ledger.Serving = nil, &pair, nil
	if err := errors.Join(r.linking.Link(pair), r.linking.Promote(pair, before), r.save()); err != nil {
		return r.stuck(cause, err)
	}
	r.record.Note("dev environments do not roll back automatically; the host stays on %s, and the next run retries", pair)
	return failed(cause)
}

// rollBack quarantines the release at fault, puts the links back and converges the last good pair.
func (r *run) rollBack(ctx context.Context, pair ledger.Pair, before map[string]link.Set, f fault.Fault) error {
	met := f.Cause // the rollback may fail with the same error
	f.Cause = r.fault.Relocated(pair, f, before)
	good, cause := *r.ledger.Runs(), f.Cause
	r.record.Note("rolling back to %s: %v", good, cause)
	// The quarantine is written first. If the run is interrupted after that, the next run restores the links and does
	// not try the pair again.
	r.quarantine.Settle(pair, f)
	r.ledger.Running.Failed = true
	r.left, r.undo.Left = &pair, &pair
	r.releases.CorrectAgain() // states of the pair may have changed modes of what is deployed
	r.serving.FollowBack(ctx, &good)
	err := r.record.Stage("roll back", good.String(), func() error {
		return errors.Join(r.save(), r.linking.Restore(ctx, before))
	})
	if err != nil {
		return r.stuck(cause, err)
	}
	// The good pair converges even if a change could not be undone.
	undone := r.takeBack(ctx, r.undo.Between(pair, good, &good), before)
	if stopped(ctx) {
		return interruptedGoingBack(cause)
	}
	if f.Of == report.FaultOfRelease {
		r.retention.KeepFailed(pair)
	}
	if undone != nil {
		r.quarantine.NoteLeft(pair)
	}
	r.ledger.Running = nil
	if err := r.save(); err != nil {
		return r.stuck(cause, err)
	}
	// The rollback runs all steps, even if the run was asked for some of them only.
	r.only = procedure.Only{}
	err = r.settleBack(ctx, good)
	if undone == nil && r.fault.SameCause(good, met, err) {
		err = nil
	}
	switch {
	case err != nil && r.ending(ctx):
		return interruptedGoingBack(cause)
	case err != nil && f.Of == report.FaultOfRelease && failure.SameAfterRollback(met, err):
		return r.stuck(cause, errors.Join(undone, err, r.quarantine.Release(pair, cause)))
	case err != nil || undone != nil:
		return r.stuck(cause, errors.Join(undone, err))
	}
	hints := append(diag.HintsOf(cause), r.afterwards(f))
	return exit.WithCode(exit.RolledBack, diag.Rollback.Hint(fmt.Errorf("rolled back to %s: %w", good, cause),
		"%s", strings.Join(slices.Compact(hints), "\n")))
}

// takeBack undoes recorded changes, and restores the links once more: states may have changed or removed them, and the
// journal has them as they were while the pair that is left was converged.
func (r *run) takeBack(ctx context.Context, scope undo.Scope, links map[string]link.Set) error {
	err := r.undo.TakeBack(ctx, scope)
	if !r.linking.Restored(links) {
		err = errors.Join(err, r.linking.Restore(ctx, links))
	}
	if good := r.ledger.Runs(); good != nil && r.movedBy != nil {
		err = errors.Join(err, r.linking.Relink(*good))
	}
	return err
}

// interruptedGoingBack returns the error of a run that was interrupted during its rollback.
func interruptedGoingBack(cause error) error {
	return exit.WithCode(exit.Interrupted, diag.Run.Hint(
		fmt.Errorf("interrupted while it rolled back, which the next run finishes; the deploy failed: %w", cause),
		"finish the rollback: corpus-agent deploy"))
}

// settleBack is settleDown for a pair whose files may be missing on the disk. It fetches missing files again before the
// pair converges, or after it failed to converge.
func (r *run) settleBack(ctx context.Context, good ledger.Pair) error {
	var relinked error
	if r.releases.Intact(ctx, good) != nil && r.releases.Repair(ctx, good) {
		relinked = r.linking.Relink(good)
	}
	err := errors.Join(relinked, r.settleDown(ctx, good))
	if err == nil || r.ending(ctx) || !r.releases.Repair(ctx, good) {
		return err
	}
	r.record.Note("the rollback failed (%v), and is retried with the release fetched again", err)
	return r.settleDown(ctx, good)
}

// settleDown makes the host run a pair that it was rolled back to. The hooks run as in a rollback by hand. A failed
// step does not end it: units must not continue to run the pair that was left, and the restored pair needs its hooks
// and its health probes.
func (r *run) settleDown(ctx context.Context, good ledger.Pair) error {
	errs := []error{r.hooks(ctx, preRelease, good), r.convergeAndInstall(ctx, good), r.serving.ServeBack(ctx, good),
		r.save()}
	if stopped(ctx) {
		return errors.Join(append(errs, ctx.Err())...)
	}
	errs = append(errs, r.project.Rollback(ctx, good), r.hooks(ctx, postRelease, good), r.serving.HealthyBack(ctx, good))
	return errors.Join(errs...)
}

// afterwards returns the hint of a deploy that was rolled back.
func (r *run) afterwards(f fault.Fault) string {
	if hint := diag.HintOf(site.ExplainDisk(f.Cause)); hint != "" {
		return hint
	}
	if f.Of == report.FaultOfHost {
		return "see what is wrong with the host; `corpus-agent status` says when the deploy is tried again"
	}
	for _, dir := range r.retention.Archives {
		if filepath.Base(dir) == r.id {
			return "the failed release is kept under " + r.Layout.Inside(dir) + "; publish a corrected version"
		}
	}
	return "publish a corrected version"
}

// stuck returns the error of a rollback that failed, for which a person has to look at the host.
func (r *run) stuck(cause, err error) error {
	if hint := diag.HintOf(site.ExplainDisk(errors.Join(cause, err))); hint != "" &&
		failure.HostErrno(errors.Join(cause, err)) {
		return exit.WithCode(exit.RollbackFailed, diag.Rollback.Hint(
			fmt.Errorf("the deploy failed (%w), and so did the rollback: %w", cause, err),
			"%s\nthen finish the rollback: corpus-agent deploy", hint))
	}
	commands := []string{"ls -l " + r.Layout.Path("/srv/projects") + "/*", "corpus-agent status", "corpus-agent converge"}
	hints := diag.HintsOf(err)
	for _, hint := range hints {
		commands = slices.DeleteFunc(commands, func(c string) bool { return strings.Contains(hint, c) })
	}
	return exit.WithCode(exit.RollbackFailed, diag.Rollback.Hint(
		fmt.Errorf("the deploy failed (%w), and so did the rollback: %w", cause, err),
		"%s", strings.Join(append(hints, "look at the host and finish by hand: "+strings.Join(commands, "; ")), "\n")))
}

// stuckBack returns the error of a rollback by hand that failed, for which a person has to look at the host, or that
// was interrupted.
func (r *run) stuckBack(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, context.Canceled) {
		return exit.WithCode(exit.Interrupted, diag.Run.Hint(
			fmt.Errorf("interrupted; the next run finishes the rollback: %w", err), "finish the rollback: corpus-agent deploy"))
	}
	hints, finish := diag.HintsOf(err), "corpus-agent status; corpus-agent rollback --converge"
	if len(hints) > 0 {
		finish = "corpus-agent status"
	}
	if !slices.ContainsFunc(hints, func(own string) bool { return strings.Contains(own, "corpus-agent converge") }) {
		finish += "; corpus-agent converge"
	}
	hint := strings.Join(append(hints, "look at the host and finish by hand: "+finish), "\n")
	return exit.WithCode(exit.RollbackFailed, diag.Rollback.Hint(fmt.Errorf("the rollback failed: %w", err), "%s", hint))
}

// failed returns err with the exit code of a failed run, unless err has an exit code of its own.
func failed(err error) error {
	if exit.Code(err) == exit.Internal {
		return exit.WithCode(exit.Failed, err)
	}
	return err
}
