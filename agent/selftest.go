package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/lock"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/self"
	"github.com/corpus-agent/corpus-agent/agent/undo"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host/units"
)

// selfStage is the stage of a run in which the agent tries what this host would start next.
const selfStage = "self-test"

// watchSelf remembers how the agent's own files are before the run changes anything.
func (r *run) watchSelf() {
	if r.Self != nil && !r.test {
		r.files = r.Self.Look()
	}
}

// watchUnits remembers how the agent's units are, for runs that deploy. Asking systemd takes ten
// milliseconds, which a run that only converges does not spend.
func (r *run) watchUnits(ctx context.Context) {
	if r.Self != nil && !r.test {
		r.units = r.Self.Units(ctx)
	}
}

// selfTest tries the agent that this host would start next, where this run changed its program, its units
// or its configuration since they were last known to work.
func (r *run) selfTest(ctx context.Context) error {
	if r.Self == nil || r.test {
		return nil
	}
	changed := r.Self.Changed(r.files)
	if len(changed) == 0 && (r.Self.Lost(ctx, r.units) == "" || r.Self.Lost(ctx, r.unitsBefore(ctx)) == "") {
		return nil
	}
	if f := r.failedTrial; f != nil && len(r.Self.Changed(f.files)) == 0 {
		return f.err // nothing has changed since, and a program that hangs takes its time to say so
	}
	return r.record.Stage(selfStage, strings.Join(changed, ", "), func() error {
		if slices.ContainsFunc(changed, r.Self.IsUnit) {
			if err := r.reloadUnits(ctx); err != nil {
				return err
			}
		}
		now := r.Self.Look()
		verdict, err := r.Self.Try(ctx, self.Trial{Before: r.unitsBefore(ctx), Lock: r.held.Lend(), Known: r.Alone == "",
			DryRun: r.dryRunTells(), Least: r.took})
		r.failedTrial = nil
		var broken *self.Broken
		if errors.As(err, &broken) && !broken.Units {
			r.failedTrial = &failedTrial{now, err}
		}
		if err != nil {
			return err
		}
		r.files = now
		r.record.Note("%s", describeTrial(changed, verdict))
		return nil
	})
}

// unitsBefore is what the agent's units have to do still: what they did before this run. A host that shuts
// down stops the timer, which does not have to be active then.
func (r *run) unitsBefore(ctx context.Context) self.Units {
	before := r.units
	if r.ShuttingDown(ctx) {
		before.Timer.Active = ""
	}
	return before
}

// failedTrial is a trial that failed, with the agent's files as they were.
type failedTrial struct {
	files self.Snapshot
	err   error
}

// dryRunTells reports whether a dry run of another agent says something about that agent. Other engines take
// their own time, and settings that were given for this run are not known to the next.
func (r *run) dryRunTells() bool {
	return r.Config.Engine == "native" && (r.project.Settings == nil || r.project.Settings.Len() == 0)
}

func describeTrial(changed []string, v self.Verdict) string {
	what := "the agent's own files changed (" + strings.Join(changed, ", ") + ")"
	switch {
	case v.Program == "":
		return what + "; no unit starts the agent, and its program was not tried, since other users may replace it"
	case v.Old:
		return fmt.Sprintf("%s; %s was tried and works: %s. It is an older one that cannot run beside this run, so what is "+
			"deployed was not tried with it", what, v.Program, v.Version)
	}
	return fmt.Sprintf("%s; %s was tried and works: %s", what, v.Program, v.Version)
}

// settleUnits has systemd know what states changed of its files, though no state acted on a unit since.
func (r *run) settleUnits(ctx context.Context) {
	h := r.undo.RecordedHost()
	if h == nil || r.test {
		return
	}
	if err := units.Settle(context.WithoutCancel(ctx), h); err != nil {
		r.record.Note("files of units changed: %v; run `systemctl daemon-reload`", err)
	}
}

func (r *run) reloadUnits(ctx context.Context) error {
	h, err := r.StateHost()
	if err == nil {
		err = units.Reload(ctx, h)
	}
	return err
}

// keepSelf is the last thing that a run does to the host: whatever became of the run, the agent that the
// next one starts with has to work. Where it does not, the run undoes what it changed, and if that does
// not help it puts the program that runs now back in its place.
func (r *run) keepSelf(ctx context.Context, err error) error {
	// A run that is asked to end does this anyway: no later run would.
	try := context.WithoutCancel(ctx)
	broken := r.selfTest(try)
	if broken == nil {
		return err
	}
	r.record.Note("undoing what this run changed: %v", broken)
	undone := r.undo.TakeBack(try, undo.Scope{Only: r.id})
	still := r.selfTest(try)
	if still != nil {
		still = r.restoreSelf(try)
	}
	if still != nil {
		return exit.WithCode(exit.RollbackFailed, diag.WithHint(errors.Join(err, undone, still),
			"repair it by hand before this host is needed: docs/troubleshooting.md, \"The agent does not start any more\""))
	}
	if err != nil {
		return err
	}
	return exit.WithCode(exit.Failed,
		diag.WithHint(fmt.Errorf("what this run changed was undone: %w", errors.Join(broken, undone)), "%s",
			diag.HintOf(broken)))
}

// restoreSelf puts the agent's own files back as they were when the run began, as the last resort.
func (r *run) restoreSelf(ctx context.Context) error {
	restored, err := r.Self.Restore(r.files)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(restored, r.Self.IsUnit) {
		if err := r.reloadUnits(ctx); err != nil {
			return err
		}
	}
	if err := r.Self.Restart(ctx, r.units); err != nil {
		return err
	}
	if err := r.selfTest(ctx); err != nil {
		return err
	}
	r.record.Note("%s: this run put them back as it had found them; whatever replaced them, such as the package "+
		"database, does not know that", strings.Join(restored, ", "))
	return nil
}

// trial is the run of a program that another run tries: a dry run of what is deployed, or of what that run
// is deploying, under the lock that it has lent. It writes nothing at all.
func (a *Agent) trial(ctx context.Context) (*report.Report, error) {
	lent, err := lock.Inherit(a.LockDescriptor, a.Layout.Lock())
	if err != nil {
		return nil, err
	}
	defer lent.Close()
	book, err := ledger.Load(a.LedgerPath())
	if err != nil {
		return nil, exit.WithCode(exit.Usage, err)
	}
	r, err := a.begin("converge", true, book)
	if err != nil {
		return nil, err
	}
	err = r.rehearseNext(ctx)
	r.finish(ctx, err)
	return r.report, err
}

// rehearseNext reads what a run needs of the host, and converges it dry.
func (r *run) rehearseNext(ctx context.Context) error {
	if err := r.recallTrust(); err != nil {
		return err
	}
	pair := r.ledger.Runs()
	if running := r.ledger.Running; running != nil && !running.Back {
		pair = &running.Pair
	}
	if pair == nil {
		return nil
	}
	if err := r.identify(ctx, grains.Identity{}); err != nil {
		return err
	}
	if !r.linked(*pair) {
		r.record.Note("the links do not lead to %s", pair)
	}
	return r.converge(ctx, *pair)
}

// recallTrust reads what this host trusts of a store, if it follows one.
func (r *run) recallTrust() error {
	pinned, err := trust.Pinned(r.Layout.Trust())
	if err != nil || !pinned {
		return err
	}
	_, err = trust.Recall(r.Layout.Trust())
	return err
}
