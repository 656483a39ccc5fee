package host

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

// Units reads and changes the units of an init system: services, and with systemd also sockets, timers and other kinds.
// Names may leave out .service.
type Units interface {
	// Allowed returns a *Skipped error if units cannot be started and stopped.
	Allowed(what string) error
	// AllowedAtBoot returns a *Skipped error if the units that are started at boot cannot be changed. A chroot has such
	// units as well.
	AllowedAtBoot(what string) error
	// Unit describes a unit. For a unit that does not exist, Found is false and the error nil. If the init system does
	// not know whether the unit runs, process is a part of the command line of its process.
	Unit(ctx context.Context, name, process string) (Unit, error)
	// Names lists all services, without .service.
	Names(ctx context.Context) ([]string, error)
	// Act starts, stops or otherwise acts on a unit and, if wait is true, waits until that is done. systemd reloads
	// changed unit files first. An error has the last log lines of the unit.
	Act(ctx context.Context, verb UnitVerb, name string, wait bool) error
	// Stays waits until a unit that was started at the given time is considered up. If the unit does not stay up, the
	// error has the reason and the last log lines of the unit.
	Stays(ctx context.Context, name string, started time.Time) error
	// SetBoot changes whether a unit is started at boot, or whether it can be started at all. If runtime is true, the
	// change lasts until the next boot.
	SetBoot(ctx context.Context, verb BootVerb, name string, runtime bool) error
}

// UnitVerb is an operation on a unit.
type UnitVerb string

// The verbs. ReloadOrRestart restarts a unit that cannot reload.
const (
	Start           UnitVerb = "start"
	Stop            UnitVerb = "stop"
	Restart         UnitVerb = "restart"
	Reload          UnitVerb = "reload"
	ReloadOrRestart UnitVerb = "reload-or-restart"
)

// BootVerb is a change of how a unit starts at boot.
type BootVerb string

// The verbs. A masked unit cannot be started at all.
const (
	Enable  BootVerb = "enable"
	Disable BootVerb = "disable"
	Mask    BootVerb = "mask"
	Unmask  BootVerb = "unmask"
)

// Unit is the state of a unit.
type Unit struct {
	Name          string // in full
	Found         bool
	Active        string // active, inactive, failed, activating ...
	Boot          string // enabled, disabled, static, masked ...; "" if unknown
	Masked        bool
	MaskedRuntime bool // until the next boot
}

// Running reports whether a unit is up.
func (u Unit) Running() bool {
	return slices.Contains([]string{"active", "reloading", "refreshing"}, u.Active)
}

// StartsAtBoot reports whether a unit is started at boot, or by a unit that needs it.
func (u Unit) StartsAtBoot() bool {
	return slices.Contains([]string{"enabled", "enabled-runtime", "static", "alias", "indirect", "generated", "transient"},
		u.Boot)
}

// UnitName returns the full name of a unit.
func UnitName(name string) string {
	if i := strings.LastIndexByte(name, '.'); i >= 0 && slices.Contains(unitTypes(), name[i+1:]) {
		return name
	}
	return name + ".service"
}

func unitTypes() []string {
	return []string{"service", "socket", "device", "mount", "automount", "swap", "target", "path", "timer", "slice",
		"scope"}
}

// OwnUnit is the unit that runs the agent. A state that starts, stops or restarts it would wait for the end of its own
// run, so the verb is postponed until the run is over.
type OwnUnit struct {
	Name string // in full

	mu     sync.Mutex
	verb   UnitVerb // the last one that was requested; "" for none
	passed []string
}

// Passed records a unit that is ordered after the agent's own and was started during the run; "" is none.
func (o *OwnUnit) Passed(unit string) {
	if o == nil || unit == "" {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !slices.Contains(o.passed, unit) {
		o.passed = append(o.passed, unit)
	}
}

// AllPassed returns the units that were recorded with Passed.
func (o *OwnUnit) AllPassed() []string {
	if o == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.passed)
}

// Pending returns the verb to apply to the unit after the run; "" for none.
func (o *OwnUnit) Pending() UnitVerb {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.verb
}

// Is reports whether a name is that of the agent's own unit.
func (o *OwnUnit) Is(name string) bool { return o != nil && UnitName(name) == o.Name }

// Put sets the verb to apply to the unit after the run.
func (o *OwnUnit) Put(verb UnitVerb) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.verb = verb
}

// Active returns the state that the unit will have after the run, given its state now. During a run in the unit,
// systemd reports it as activating.
func (o *OwnUnit) Active(now string) string {
	switch verb := o.Pending(); {
	case verb == Stop:
		return "inactive"
	case verb != "" || now == "activating":
		return "active"
	}
	return now
}
