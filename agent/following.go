package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/service"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// following is the units of a host for states that run before the links move. A state that starts a unit of
// the release then starts the release before it, whose failure says nothing about the release to come. So a
// failed start is put off: the unit is started after the links have moved, and judged then.
type following struct {
	host.Units
	follows func(ctx context.Context, unit string) bool

	mu     sync.Mutex // parallel states
	putOff map[string]error
	tried  map[string]bool
}

// Unwrap gives the units of the host.
func (f *following) Unwrap() host.Units { return f.Units }

// Act acts on a unit. A unit that follows the links may fail to start.
func (f *following) Act(ctx context.Context, verb host.UnitVerb, name string, wait bool) error {
	err := f.Units.Act(ctx, verb, name, wait)
	if verb == host.Stop {
		f.note(name, false, nil)
		return err
	}
	if ctx.Err() != nil || f.Allowed("") != nil || !f.follows(ctx, name) {
		return err
	}
	f.note(name, true, err)
	return nil
}

// Stays watches a unit that was started. One that follows the links is watched after they have moved.
func (f *following) Stays(ctx context.Context, name string, started time.Time) error {
	err := f.Units.Stays(ctx, name, started)
	if err == nil || ctx.Err() != nil || !f.follows(ctx, name) {
		return err
	}
	f.note(name, true, err)
	return nil
}

// Unit describes a unit. One whose start was put off counts as up.
func (f *following) Unit(ctx context.Context, name, process string) (host.Unit, error) {
	u, err := f.Units.Unit(ctx, name, process)
	f.mu.Lock()
	tried := f.tried[u.Name]
	f.mu.Unlock()
	if err != nil || !tried || u.Running() {
		return u, err
	}
	f.note(name, true, fmt.Errorf("%s was started, and is %s now", u.Name, u.Active))
	u.Active = "active"
	return u, nil
}

func (f *following) note(name string, tried bool, err error) {
	unit := service.FullName(name)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tried[unit] = tried
	if !tried {
		delete(f.putOff, unit)
	} else if err != nil && f.putOff[unit] == nil {
		f.putOff[unit] = err
	}
}

// units are those whose start failed.
func (f *following) units() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var units []string
	for unit := range f.putOff {
		units = append(units, unit)
	}
	slices.Sort(units)
	return units
}

// followingUnits has states of a deploy act on the units of a pair whose links are still to move.
func (r *run) followingUnits(pair ledger.Pair, units host.Units) (host.Units, error) {
	moving := r.moving(pair.Releases())
	if !r.flips || len(moving) == 0 {
		return units, nil
	}
	s, err := r.System()
	if err != nil || s.Allowed() != nil {
		return units, err
	}
	projects, err := r.inService(pair)
	if err != nil {
		return units, err
	}
	projects = slices.DeleteFunc(projects, func(p service.Project) bool { return !slices.Contains(moving, p.Name) })
	r.following = &following{
		Units: units, putOff: map[string]error{}, tried: map[string]bool{},
		follows: func(ctx context.Context, unit string) bool { return service.Follows(ctx, s, projects, unit) },
	}
	return r.following, nil
}

// putOff says which starts of units failed before the links moved, and has those units started afterwards.
func (r *run) putOff() []string {
	if r.following == nil {
		return nil
	}
	units := r.following.units()
	for _, unit := range units {
		text, _, _ := strings.Cut(r.following.putOff[unit].Error(), "\n")
		r.record.Note("a state could not start %s from the release before, which does not count: it is started again, and judged, after the links have moved: %s", unit, text)
	}
	r.following = nil
	return units
}
