package selftest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/undo"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host/units"
)

// Keep tries the agent that the host starts next, as the last step of a run. result is the error of the run. The next
// agent has to work whether the run succeeded or not. If it does not, Keep undoes the changes of the run, and if that
// does not help, it restores the agent's files of the beginning of the run.
func (r *Run) Keep(ctx context.Context, result error) error {
	// A run that is ending does this, too: there may be no later run.
	try := context.WithoutCancel(ctx)
	broken := r.Try(try)
	if broken == nil {
		return result
	}
	r.Record.Note("undoing what this run changed: %v", broken)
	undone := r.Undo.TakeBack(try, undo.Scope{Only: r.ID})
	still := r.Try(try)
	if still != nil {
		still = r.restore(try)
	}
	if still != nil {
		return exit.WithCode(exit.RollbackFailed, diag.Agent.Hint(errors.Join(result, undone, still),
			"repair it by hand before this host is needed: docs/troubleshooting.md, \"The agent does not start any more\""))
	}
	if result != nil {
		return result
	}
	return exit.WithCode(exit.Failed,
		diag.Agent.Hint(fmt.Errorf("what this run changed was undone: %w", errors.Join(broken, undone)), "%s",
			diag.HintOf(broken)))
}

// restore restores the agent's own files of the beginning of the run. It is the last resort.
func (r *Run) restore(ctx context.Context) error {
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
	if err := r.Try(ctx); err != nil {
		return err
	}
	r.Record.Note("%s: this run restored their earlier content; the program that replaced them, such as a package "+
		"manager, has no record of that", strings.Join(restored, ", "))
	return nil
}

// reloadUnits makes systemd reload its unit files.
func (r *Run) reloadUnits(ctx context.Context) error {
	h, err := r.Host.StateHost()
	if err == nil {
		err = units.Reload(ctx, h)
	}
	return err
}
