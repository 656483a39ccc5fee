// Package selftest tries the agent that the host starts next, in a run that changed the agent's program, its units or
// its configuration. A change that breaks the agent would leave the host without updates, so the run undoes it.
package selftest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/self"
	"github.com/corpus-agent/corpus-agent/agent/undo/recording"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Stage is the name of the stage of a run in which the agent is tried.
const Stage = "self-test"

// Run is the part of one run of the agent that tries the next agent. All of its exported fields have to be set.
type Run struct {
	Host   *inspect.Host
	ID     string
	Test   bool // a dry run, which tries nothing
	Record *report.Builder
	// Self is the agent that the host starts next; nil if the host that is converged does not start this agent.
	Self *self.Self
	Undo *recording.Run
	// Lend returns the lock of the run, for the program that is tried.
	Lend func() *os.File
	// Settings returns the settings of the project that were given for this run alone; nil for none.
	Settings func() *value.Map

	files  self.Snapshot // the agent's own files, as they last worked
	units  self.Units    // the agent's own units, as they were before a deploy
	took   time.Duration // the longest converge of this run
	failed *failedTrial  // the last trial, if it failed
}

// Watch reads the agent's own files before the run changes anything.
func (r *Run) Watch() {
	if r.Self != nil && !r.Test {
		r.files = r.Self.Look()
	}
}

// WatchUnits reads the state of the agent's units before a deploy. A run that only converges does not call it, since
// the request to systemd takes ten milliseconds.
func (r *Run) WatchUnits(ctx context.Context) {
	if r.Self != nil && !r.Test {
		r.units = r.Self.Units(ctx)
	}
}

// Try tries the agent that the host starts next, if this run has changed its program, its units or its configuration
// since they last worked.
func (r *Run) Try(ctx context.Context) error {
	if r.Self == nil || r.Test {
		return nil
	}
	changed := r.Self.Changed(r.files)
	if len(changed) == 0 && (r.Self.Lost(ctx, r.units) == "" || r.Self.Lost(ctx, r.unitsBefore(ctx)) == "") {
		return nil
	}
	if f := r.failed; f != nil && len(r.Self.Changed(f.files)) == 0 {
		return f.err // nothing has changed since, and the trial of a program that hangs takes long
	}
	return r.Record.Stage(Stage, strings.Join(changed, ", "), func() error {
		if slices.ContainsFunc(changed, r.Self.IsUnit) {
			if err := r.reloadUnits(ctx); err != nil {
				return err
			}
		}
		now := r.Self.Look()
		verdict, err := r.Self.Try(ctx, self.Trial{Before: r.unitsBefore(ctx), Lock: r.Lend(), Known: r.Host.Alone == "",
			DryRun: r.dryRunApplies(), Least: r.took})
		r.failed = nil
		var broken *self.Broken
		if errors.As(err, &broken) && !broken.Units {
			r.failed = &failedTrial{now, err}
		}
		if err != nil {
			return err
		}
		r.files = now
		r.Record.Note("%s", describeTrial(changed, verdict))
		return nil
	})
}

// unitsBefore returns the state that the agent's units must still have: the state before this run. The timer need not
// be active while the host shuts down, since the shutdown stops it.
func (r *Run) unitsBefore(ctx context.Context) self.Units {
	before := r.units
	if r.Host.ShuttingDown(ctx) {
		before.Timer.Active = ""
	}
	return before
}

// failedTrial is a trial that failed, with the agent's files of that time.
type failedTrial struct {
	files self.Snapshot
	err   error
}

// dryRunApplies reports whether the result of a dry run depends on the agent that is tried. The duration of other
// engines does not, and settings that were given for this run alone do not apply to the next.
func (r *Run) dryRunApplies() bool {
	return r.Host.Config.Engine == "native" && (r.Settings() == nil || r.Settings().Len() == 0)
}

// describeTrial returns the note for a trial that succeeded.
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

// Converged records the duration of a converge. A dry run of the next agent gets at least as long.
func (r *Run) Converged(took time.Duration) { r.took = max(r.took, took) }

// Changed returns the agent's own files that have changed since they last worked.
func (r *Run) Changed() []string { return r.Self.Changed(r.files) }
