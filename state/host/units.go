package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coreos/go-systemd/v22/dbus"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Units are what an init system runs: services above all, and where it knows them sockets, timers
// and the like. Names may leave out .service.
type Units interface {
	// Allowed says whether units can be started and stopped; if not, the error is a *Skipped.
	Allowed(what string) error
	// AllowedAtBoot says the same of what is started at boot, which a chroot does have.
	AllowedAtBoot(what string) error
	// Unit describes a unit. One that does not exist is not Found, which is no error. Where the init
	// system cannot tell by itself, process is a part of the command line of what the unit runs.
	Unit(ctx context.Context, name, process string) (Unit, error)
	// Names lists all services, without .service.
	Names(ctx context.Context) ([]string, error)
	// Act has a unit started, stopped and so on, and unless told not to waits until that is done.
	// Unit files that changed are read anew before. An error tells the last words of the unit.
	Act(ctx context.Context, verb UnitVerb, name string, wait bool) error
	// SetBoot changes whether a unit is started at boot, or can be at all; runtime says that only
	// until the next boot.
	SetBoot(ctx context.Context, verb BootVerb, name string, runtime bool) error
}

// UnitVerb is something to do to a unit now.
type UnitVerb string

// The verbs. ReloadOrRestart restarts what cannot reload.
const (
	Start           UnitVerb = "start"
	Stop            UnitVerb = "stop"
	Restart         UnitVerb = "restart"
	Reload          UnitVerb = "reload"
	ReloadOrRestart UnitVerb = "reload-or-restart"
)

// BootVerb is something to do about a unit at boot.
type BootVerb string

// The verbs. What is masked cannot be started by anything.
const (
	Enable  BootVerb = "enable"
	Disable BootVerb = "disable"
	Mask    BootVerb = "mask"
	Unmask  BootVerb = "unmask"
)

// Unit is how a unit is doing.
type Unit struct {
	Name          string // in full
	Found         bool
	Active        string // active, inactive, failed, activating ...
	Boot          string // enabled, disabled, static, masked ...; "" where nobody knows
	Masked        bool
	MaskedRuntime bool // until the next boot
}

// Running reports whether a unit is up.
func (u Unit) Running() bool {
	return slices.Contains([]string{"active", "reloading", "refreshing"}, u.Active)
}

// StartsAtBoot reports whether a unit is started when it is needed, at boot or by what needs it.
func (u Unit) StartsAtBoot() bool {
	return slices.Contains([]string{"enabled", "enabled-runtime", "static", "alias", "indirect", "generated", "transient"}, u.Boot)
}

// initSystem is how one kind of host runs units. It may keep what it read until told to forget.
type initSystem interface {
	unit(ctx context.Context, name, process string) (Unit, error)
	names(ctx context.Context) ([]string, error)
	act(ctx context.Context, verb UnitVerb, name string, wait bool) error
	setBoot(ctx context.Context, verb BootVerb, name string, runtime bool) error
	forget()
}

// units is the part of Units that is the same everywhere: what may be done, and that every change is
// recorded before it is made.
type units struct {
	init        initSystem
	refused     bool // nothing may be done: the root is no system
	bootRefused bool
	recorder    Recorder
	own         *OwnUnit // nil where nobody carries out later what is put off
}

func (u *units) Allowed(what string) error {
	if u.refused {
		return &Skipped{What: what}
	}
	return nil
}

func (u *units) AllowedAtBoot(what string) error {
	if u.bootRefused {
		return &Skipped{What: what}
	}
	return nil
}

func (u *units) Unit(ctx context.Context, name, process string) (Unit, error) {
	if err := u.AllowedAtBoot("looking at unit " + name); err != nil {
		return Unit{}, err
	}
	unit, err := u.init.unit(ctx, name, process)
	if err == nil && u.own.is(name) {
		unit.Active = u.own.active(unit.Active)
	}
	return unit, err
}

func (u *units) Names(ctx context.Context) ([]string, error) {
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

func (u *units) Act(ctx context.Context, verb UnitVerb, name string, wait bool) error {
	if err := u.Allowed(fmt.Sprintf("%s of unit %s", verb, name)); err != nil {
		return err
	}
	if u.own.is(name) {
		u.own.put(verb)
		return nil
	}
	return u.change(ctx, KindUnit, name, func() error { return u.init.act(ctx, verb, name, wait) })
}

func (u *units) SetBoot(ctx context.Context, verb BootVerb, name string, runtime bool) error {
	if err := u.AllowedAtBoot(fmt.Sprintf("%s of unit %s", verb, name)); err != nil {
		return err
	}
	return u.change(ctx, KindBoot, name, func() error { return u.init.setBoot(ctx, verb, name, runtime) })
}

// ReloadUnits has the init system read its files again, where it does not do so by itself.
func (h *Host) ReloadUnits(ctx context.Context) error {
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

// SettleUnits has the init system read its files again if states changed one of them and nothing has had it
// do so since.
func (h *Host) SettleUnits(ctx context.Context) error {
	if u, ok := unitsOf(h.Units); ok && !u.refused {
		if s, ok := u.init.(*systemd); ok && s.stale.Load() {
			return h.ReloadUnits(ctx)
		}
	}
	return nil
}

// change records a unit and changes it.
func (u *units) change(ctx context.Context, kind Kind, name string, do func() error) error {
	if err := replacing(u.recorder, Subject{kind, unitName(name)}); err != nil {
		return err
	}
	defer u.init.forget()
	err := do()
	if errors.Is(err, errNoUnit) {
		return u.withMeant(ctx, name, err)
	}
	return err
}

// errNoUnit says that there is no such unit.
var errNoUnit = errors.New("no such unit")

// withMeant adds the unit that was probably meant.
func (u *units) withMeant(ctx context.Context, name string, err error) error {
	names, listErr := u.init.names(ctx)
	if listErr != nil {
		return err
	}
	hint := "install the package that brings it, in a state that this one requires"
	if meant := diag.DidYouMean(strings.TrimSuffix(name, ".service"), bare(names)); meant != "" {
		hint = meant
	}
	return diag.WithHint(err, "%s", hint)
}

// bare are the names of units as people write them, which for a service is without its kind.
func bare(names []string) []string {
	short := make([]string, len(names))
	for i, name := range names {
		short[i] = strings.TrimSuffix(name, ".service")
	}
	return short
}

// unitName is a unit's name in full.
func unitName(name string) string {
	if i := strings.LastIndexByte(name, '.'); i >= 0 && slices.Contains(unitTypes(), name[i+1:]) {
		return name
	}
	return name + ".service"
}

func unitTypes() []string {
	return []string{"service", "socket", "device", "mount", "automount", "swap", "target", "path", "timer", "slice", "scope"}
}

// unitsOf finds the units of a host below what wraps them.
func unitsOf(all Units) (*units, bool) {
	for {
		if u, ok := all.(*units); ok {
			return u, true
		}
		wrapper, ok := all.(interface{ Unwrap() Units })
		if !ok {
			return nil, false
		}
		all = wrapper.Unwrap()
	}
}
