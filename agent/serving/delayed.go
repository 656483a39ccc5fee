package serving

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/service"
	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// delayedUnits are the units of a host as states see them that run before the links move. A state that starts a unit
// then starts the release before, whose failure says nothing about the new one. So a failed start counts as a success
// until the links have moved: Serve starts the unit again, and its result counts.
type delayedUnits struct {
	host.Units
	follows func(ctx context.Context, unit string) bool

	mu     sync.Mutex // parallel states
	failed map[string]error
	tried  map[string]bool
}

// Unwrap returns the units of the host.
func (d *delayedUnits) Unwrap() host.Units { return d.Units }

// Act acts on a unit. If a unit that follows the links fails to start, Act records the error and returns nil.
func (d *delayedUnits) Act(ctx context.Context, verb host.UnitVerb, name string, wait bool) error {
	err := d.Units.Act(ctx, verb, name, wait)
	if verb == host.Stop {
		d.note(name, false, nil)
		return err
	}
	if ctx.Err() != nil || d.Allowed("") != nil || !d.follows(ctx, name) {
		return err
	}
	d.note(name, true, err)
	return nil
}

// Stays watches a unit that was started. If one that follows the links ends, Stays records the error and returns nil.
func (d *delayedUnits) Stays(ctx context.Context, name string, started time.Time) error {
	err := d.Units.Stays(ctx, name, started)
	if err == nil || ctx.Err() != nil || !d.follows(ctx, name) {
		return err
	}
	d.note(name, true, err)
	return nil
}

// Unit describes a unit. One whose start failed counts as active.
func (d *delayedUnits) Unit(ctx context.Context, name, process string) (host.Unit, error) {
	u, err := d.Units.Unit(ctx, name, process)
	d.mu.Lock()
	tried := d.tried[u.Name]
	d.mu.Unlock()
	if err != nil || !tried || u.Running() {
		return u, err
	}
	d.note(name, true, fmt.Errorf("%s was started, and is %s now", u.Name, u.Active))
	u.Active = "active"
	return u, nil
}

// note records that a state tried to start a unit, with the first error, or stopped it.
func (d *delayedUnits) note(name string, tried bool, err error) {
	unit := service.FullName(name)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tried[unit] = tried
	if !tried {
		delete(d.failed, unit)
	} else if err != nil && d.failed[unit] == nil {
		d.failed[unit] = err
	}
}

// units lists the units whose start failed, sorted.
func (d *delayedUnits) units() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var units []string
	for unit := range d.failed {
		units = append(units, unit)
	}
	slices.Sort(units)
	return units
}

// started lists the units that states have started, and not stopped since, sorted.
func (d *delayedUnits) started() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var units []string
	for unit, started := range d.tried {
		if started {
			units = append(units, unit)
		}
	}
	slices.Sort(units)
	return units
}

// UnitsBeforeLinks wraps the units of the host for states of a deploy that run before the links of a pair move.
func (r *Run) UnitsBeforeLinks(pair ledger.Pair, units host.Units) (host.Units, error) {
	moving := r.Moving(pair.Releases())
	if len(moving) == 0 {
		return units, nil
	}
	s, err := r.Host.System()
	if err != nil || s.Allowed() != nil {
		return units, err
	}
	projects, err := r.inService(pair)
	if err != nil {
		return units, err
	}
	projects = structsort.Without(projects, func(p service.Project) bool { return !slices.Contains(moving, p.Name) })
	r.beforeLinks = &delayedUnits{
		Units: units, failed: map[string]error{}, tried: map[string]bool{},
		follows: func(ctx context.Context, unit string) bool { return service.Follows(ctx, s, projects, unit) },
	}
	return r.beforeLinks, nil
}

// StartDelayed notes which starts of units failed before the links moved, and has Serve start those units. Serve
// also starts a unit that a state started, and whose program ends before the links have moved.
func (r *Run) StartDelayed() {
	r.delayed, r.started = nil, nil
	if r.beforeLinks == nil {
		return
	}
	r.delayed, r.started = r.beforeLinks.units(), r.beforeLinks.started()
	for _, unit := range r.delayed {
		text, _, _ := strings.Cut(r.beforeLinks.failed[unit].Error(), "\n")
		r.Record.Note(
			"a state could not start %s from the release before, which does not count: "+
				"it is started again, and checked, after the links have moved: %s",
			unit,
			text,
		)
	}
	r.beforeLinks = nil
}
