// Package service implements service.running and the other service states, which manage the services of an init
// system.
//
// A service has two properties, whether it runs and whether it starts at boot, and a state sets one or both. In
// a chroot, states skip the first with a warning and set only the second.
//
// Before a unit is started or stopped, the host reloads systemd's configuration if unit files, drop-ins or the
// input of generators have changed, so no state has to request it. A check does not reload anything.
package service

import (
	"context"
	"fmt"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Functions returns the functions of service.
func Functions() module.Table {
	return module.Table{
		"running":  func() module.Resource { return &running{} },
		"dead":     func() module.Resource { return &dead{} },
		"enabled":  func() module.Resource { return &atBoot{on: true} },
		"disabled": func() module.Resource { return &atBoot{} },
		"masked":   func() module.Resource { return &mask{on: true} },
		"unmasked": func() module.Resource { return &mask{} },
	}
}

// activity holds the arguments that the states that start or stop a service have in common.
type activity struct {
	Name      string  `sls:"name"`
	Enable    *bool   `sls:"enable"` // nil leaves it unchanged
	Process   string  `sls:"sig"`    // text in the command line of the process that an init script starts
	InitDelay float64 `sls:"init_delay"`
	NoBlock   bool    `sls:"no_block"` // do not wait until the job ends
	Enabled   any     `sls:"enabled"`  // a common mistake for enable, which would otherwise be ignored
}

func (a *activity) slip() error {
	if a.Enabled == nil {
		return nil
	}
	return diag.Argument.Hint(fmt.Errorf("service %s has the argument enabled, which is the name of another state",
		a.Name), "write `- enable: ...`")
}

// wait waits for init_delay.
func (a *activity) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Duration(a.InitDelay * float64(time.Second))):
		return nil
	}
}

// bootVerb returns the change of the unit's state at boot, or "". If a unit cannot be disabled, it returns a
// warning instead.
func (a *activity) bootVerb(u host.Unit) (verb host.BootVerb, warnings []string) {
	switch {
	case a.Enable == nil || *a.Enable == u.StartsAtBoot():
		return "", nil
	case *a.Enable:
		return host.Enable, nil
	}
	return disabling(u)
}

// disabling returns the verb that disables a unit, or a warning if the unit cannot be disabled.
func disabling(u host.Unit) (host.BootVerb, []string) {
	switch u.Boot {
	case "enabled", "enabled-runtime":
		return host.Disable, nil
	}
	return "",
		[]string{fmt.Sprintf("%s is %s: other units start it, and it cannot be disabled; mask it to keep it from running",
			u.Name, u.Boot)}
}

// onlyAtBoot reports whether the state can only enable and disable services, as in a chroot. If it cannot do that
// either, the error says why it is skipped.
func (a *activity) onlyAtBoot(h *host.Host, what string) (bool, error) {
	skipped := h.Units.Allowed(what + " service " + a.Name)
	if skipped == nil {
		return false, nil
	}
	if a.Enable != nil && h.Units.AllowedAtBoot(what) == nil {
		return true, nil
	}
	return false, skipped
}

// setBoot applies verb unless it is "".
func setBoot(ctx context.Context, h *host.Host, name string, verb host.BootVerb) error {
	if verb == "" {
		return nil
	}
	return h.Units.SetBoot(ctx, verb, name, false)
}

// changed returns the changes in the form of all service states: whether the service is up, by name.
func changed(name string, up bool) *value.Map { return value.NewMap(name, up) }
