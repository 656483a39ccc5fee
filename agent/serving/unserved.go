package serving

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/service"
	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host/units"
)

// This file compares what units run with the proof that the deployed pair was healthy.

// StillServes checks, after a run that deployed nothing, whether the units that proved the deployed pair healthy still
// run it. It asks no probes. What it finds goes into the report and does not change the result of the run, which it
// returns.
func (r *Run) StillServes(ctx context.Context, result error) error {
	proven := r.Ledger.Proven
	if result != nil || r.Test || ctx.Err() != nil || !proven.Proves(r.Ledger.Good) || len(proven.Units) == 0 {
		return result
	}
	unserved, err := r.unserved(ctx, *proven)
	if err != nil {
		r.Record.Note("cannot determine whether the units still run %s: %v", r.Ledger.Good, err)
	}
	for _, u := range unserved {
		r.unserves(u.text)
	}
	return result
}

// Unserved is a unit that does not run the release that it proved healthy, or whose program ended since.
type Unserved struct {
	unit, text string
	passing    bool // the unit is being started or stopped, or has not been started since the host booted
}

// unserved lists the units that proved a pair and do not run it, or whose programs ended since.
func (r *Run) unserved(ctx context.Context, proven ledger.Proven) (unserved []Unserved, err error) {
	s, members, err := r.deployedUnits(ctx, proven.Pair)
	if err != nil || s == nil {
		return nil, err
	}
	members = structsort.Without(members, func(m service.Member) bool { return !proven.Has(m.Unit) })
	w := r.watchOver(s, members)
	if w == nil {
		return nil, nil
	}
	if err := w.Begin(ctx); err != nil {
		return nil, err
	}
	seen, err := w.Look(ctx)
	for _, unit := range seen {
		was := proven.Units[slices.IndexFunc(proven.Units, func(u ledger.ProvenUnit) bool { return u.Unit == unit.Unit })]
		d, failed := s.Service(ctx, unit.Unit)
		switch {
		case unit.Err != nil:
			text := fmt.Sprintf("%s does not run %s: %v", unit.Unit, unit.Release, unit.Err)
			unserved = append(unserved, Unserved{unit.Unit, text, failed != nil || passing(d)})
		case failed == nil && d.Restarts > was.Restarts:
			text := fmt.Sprintf(
				"%s ended %s since run %s found it healthy, and was restarted by the init system",
				unit.Unit,
				times(d.Restarts-was.Restarts),
				proven.Run,
			)
			unserved = append(unserved, Unserved{unit: unit.Unit, text: text})
		}
	}
	return unserved, err
}

// passing reports whether a unit is down for a reason that says nothing about its program: it is being started or
// stopped, or the host has booted and not started it yet.
func passing(d units.Service) bool {
	starts := d.Active == "activating" && d.Sub != "auto-restart"
	return !d.Running() && (starts || d.Active == "deactivating" || d.Known && d.Began == 0)
}

// UnservedBefore lists the units that do not run the deployed pair, before states of this run may start them again.
func (r *Run) UnservedBefore(ctx context.Context, pair ledger.Pair) []Unserved {
	proven := r.Ledger.Proven
	if r.Test || !proven.Proves(&pair) || !proven.Proves(r.Ledger.Good) || len(proven.Units) == 0 {
		return nil
	}
	before, err := r.unserved(ctx, *proven)
	if err != nil {
		r.Record.Note("cannot determine whether the units ran %s before it converged: %v", pair, err)
	}
	return structsort.Without(before, func(u Unserved) bool { return u.passing })
}

// KeepUnserved writes into the ledger which units of before, from UnservedBefore, run what is deployed now: states
// started them again, and no run has proven them healthy since.
func (r *Run) KeepUnserved(ctx context.Context, before []Unserved) {
	if len(before) == 0 {
		return
	}
	ctx = context.WithoutCancel(ctx)
	proven := r.Ledger.Proven
	after, err := r.unserved(ctx, *proven)
	for _, b := range before {
		if err == nil && slices.ContainsFunc(after, func(a Unserved) bool { return a.unit == b.unit }) {
			continue
		}
		proven.StartedAgain(b.unit, r.beganAt(ctx, b.unit), fmt.Sprintf(
			"%s was started again by the states of run %s, which found: %s; "+
				"to prove it healthy again: corpus-agent deploy --only health",
			b.unit,
			r.ID,
			b.text,
		))
	}
	if err := r.Save(); err != nil {
		r.Record.Note("which units have to be proven again was not kept: %v", err)
	}
}

// beganAt returns when the program of a unit started, by the wall clock as it was then; zero if that is unknown.
func (r *Run) beganAt(ctx context.Context, unit string) time.Time {
	if s, err := r.Host.System(); err == nil {
		if d, err := s.Service(ctx, unit); err == nil {
			return d.BeganAt
		}
	}
	return time.Time{}
}

// RepeatUnserved adds to the report which units states of earlier runs started again, since they did not run the
// deployed pair. It repeats that until a run proves the units healthy. A unit that has ended since, or that was not
// started by states, is removed from the ledger.
func (r *Run) RepeatUnserved(ctx context.Context) {
	if !r.Ledger.Proven.Proves(r.Ledger.Good) || len(r.Ledger.Proven.Unserved) == 0 {
		return
	}
	holds, err := r.startedByStates(context.WithoutCancel(ctx), *r.Ledger.Proven)
	if err == nil && r.Ledger.Proven.Keep(holds) && !r.Test {
		err = r.Save()
	}
	if err != nil {
		r.Record.Note("cannot determine whether the units that states started again still run: %v", err)
	}
	for _, text := range r.Ledger.Proven.Unserved {
		r.unserves(text)
	}
}

// startedByStates returns a function that reports whether the program that states started again still runs in a unit of
// the proven pair.
func (r *Run) startedByStates(ctx context.Context, proven ledger.Proven) (holds func(unit string, at time.Time) bool,
	err error) {
	s, members, err := r.deployedUnits(ctx, proven.Pair)
	if err != nil || s == nil {
		return func(string, time.Time) bool { return true }, err
	}
	runs := map[string]time.Time{}
	for _, m := range members {
		d, err := s.Service(ctx, m.Unit)
		if err != nil {
			return nil, err
		}
		if d.Running() {
			runs[m.Unit] = d.BeganAt
		}
	}
	return func(unit string, at time.Time) bool {
		began, running := runs[unit]
		return running && (at.IsZero() || began.Equal(at))
	}, nil
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return diag.Count(n, "time")
}
