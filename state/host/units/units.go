// Package units reads and changes the services of a host with its init system: systemd, OpenRC or SysV scripts.
//
// Units has the common part: which operations are allowed, and that every change is recorded first. In a chroot, in
// which no service runs, services are only enabled and disabled, with systemctl.
package units

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/coreos/go-systemd/v22/dbus"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// initSystem is one kind of init system. It may cache its reads until forget is called.
type initSystem interface {
	unit(ctx context.Context, name, process string) (host.Unit, error)
	names(ctx context.Context) ([]string, error)
	act(ctx context.Context, verb host.UnitVerb, name string, wait bool) error
	setBoot(ctx context.Context, verb host.BootVerb, name string, runtime bool) error
	forget()
}

// Units implements host.Units. It has the part that all init systems share: it refuses changes that are not allowed,
// and records every change before it is made.
type Units struct {
	init        initSystem
	refused     bool // nothing is allowed: the root is not a system
	bootRefused bool
	recorder    host.ChangeRecorder
	own         *host.OwnUnit // nil if changes to the agent's unit cannot be postponed
	changed     func()        // called when a unit was changed, which may mount something; may be nil
}

// New opens the units of a host, those of the init system that it has.
func New(h *host.Host, o host.Options) *Units {
	init := initSystemOf(h.Files, h.Commands, o.Relocated(), o.Offline())
	if s, ok := init.(*systemd); ok {
		s.own = o.Own
	}
	return &Units{
		init: init, refused: o.Offline(), bootRefused: o.Refuses(),
		recorder: o.Recorder, own: o.Own, changed: h.ForgetTables,
	}
}

// Changed drops the cached units if a file that defines them was written, and records whether systemd has to reload its
// files.
func (u *Units) Changed(path string) {
	if holdsUnits(path) {
		u.init.forget()
	}
	if s, ok := u.init.(*systemd); ok && systemdReads(path) {
		s.stale.Store(true)
	}
}

// Forget drops the cached units.
func (u *Units) Forget() { u.init.forget() }

// Forget drops the cached units of a host.
func Forget(h *host.Host) {
	if u, ok := unitsOf(h.Units); ok {
		u.Forget()
	}
}

// Allowed returns a *host.Skipped error if units cannot be started and stopped.
func (u *Units) Allowed(what string) error {
	if u.refused {
		return &host.Skipped{What: what}
	}
	return nil
}

// AllowedAtBoot returns a *host.Skipped error if the units that start at boot cannot be changed.
func (u *Units) AllowedAtBoot(what string) error {
	if u.bootRefused {
		return &host.Skipped{What: what}
	}
	return nil
}

// Unit describes a unit. For one that does not exist, Found is false.
func (u *Units) Unit(ctx context.Context, name, process string) (host.Unit, error) {
	if err := u.AllowedAtBoot("querying unit " + name); err != nil {
		return host.Unit{}, err
	}
	unit, err := u.init.unit(ctx, name, process)
	if err == nil && u.own.Is(name) {
		unit.Active = u.own.Active(unit.Active)
	}
	return unit, err
}

// Names lists all services, without .service.
func (u *Units) Names(ctx context.Context) ([]string, error) {
	if err := u.AllowedAtBoot("listing units"); err != nil {
		return nil, err
	}
	all, err := u.init.names(ctx)
	var services []string
	for _, name := range all {
		if service, ok := strings.CutSuffix(name, ".service"); ok {
			services = append(services, service)
		}
	}
	return services, err
}

// Act starts, stops, restarts or reloads a unit. Verbs for the agent's own unit are postponed until the end of the run.
func (u *Units) Act(ctx context.Context, verb host.UnitVerb, name string, wait bool) error {
	if err := u.Allowed(fmt.Sprintf("%s of unit %s", verb, name)); err != nil {
		return err
	}
	if u.own.Is(name) {
		u.own.Put(verb)
		return nil
	}
	return u.change(ctx, host.KindUnit, name, func() error { return u.init.act(ctx, verb, name, wait) })
}

// SetBoot changes whether a unit is started at boot, or can be started at all.
func (u *Units) SetBoot(ctx context.Context, verb host.BootVerb, name string, runtime bool) error {
	if err := u.AllowedAtBoot(fmt.Sprintf("%s of unit %s", verb, name)); err != nil {
		return err
	}
	return u.change(ctx, host.KindBoot, name, func() error { return u.init.setBoot(ctx, verb, name, runtime) })
}

// Reload makes the init system reload its files, if it does not do so itself.
func Reload(ctx context.Context, h *host.Host) error {
	u, ok := unitsOf(h.Units)
	if !ok || u.refused {
		return nil
	}
	defer u.init.forget()
	if s, ok := u.init.(*systemd); ok {
		return s.connected(ctx, func(c *dbus.Conn) error { return s.reload(ctx, c) })
	}
	return nil
}

// Settle makes the init system reload its files if states have changed one of them since the last reload.
func Settle(ctx context.Context, h *host.Host) error {
	if u, ok := unitsOf(h.Units); ok && !u.refused {
		if s, ok := u.init.(*systemd); ok && s.stale.Load() {
			return Reload(ctx, h)
		}
	}
	return nil
}

// change records a unit and changes it.
func (u *Units) change(ctx context.Context, kind host.Kind, name string, do func() error) error {
	if err := host.Record(u.recorder, host.Subject{Kind: kind, Name: host.UnitName(name)}); err != nil {
		return err
	}
	if u.changed != nil {
		defer u.changed()
	}
	defer u.init.forget()
	err := do()
	if errors.Is(err, errNoUnit) {
		return u.withMeant(ctx, name, err)
	}
	return err
}

// errNoUnit is the error for a unit that does not exist.
var errNoUnit = errors.New("no such unit")

// withMeant adds a hint with similar names of units.
func (u *Units) withMeant(ctx context.Context, name string, err error) error {
	names, listErr := u.init.names(ctx)
	if listErr != nil {
		return err
	}
	hint := "install the package that brings it, in a state that this one requires"
	if meant := diag.DidYouMean(strings.TrimSuffix(name, ".service"), bare(names)); meant != "" {
		hint = meant
	}
	return diag.Unit.Hint(err, "%s", hint)
}

// bare returns the names of units without .service.
func bare(names []string) []string {
	short := make([]string, len(names))
	for i, name := range names {
		short[i] = strings.TrimSuffix(name, ".service")
	}
	return short
}

// unitsOf returns the *Units that all is or wraps.
func unitsOf(all host.Units) (*Units, bool) {
	for {
		if u, ok := all.(*Units); ok {
			return u, true
		}
		wrapper, ok := all.(interface{ Unwrap() host.Units })
		if !ok {
			return nil, false
		}
		all = wrapper.Unwrap()
	}
}
