// Package service holds service.running and its kin: states about what an init system runs.
//
// A service has two sides, whether it runs now and whether it starts at boot, and a state may be
// about one or both. In a chroot there is only the second: what would start or stop something there
// is skipped, and what is to be started at boot is still seen to.
//
// Before a unit is started or stopped systemd reads its files again if one of them has changed, drop-ins and
// what units are generated from included, so that no state has to ask for it. Looking at a unit changes
// nothing.
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

// Functions are the functions of service.
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

// activity is what the states share that start or stop a service.
type activity struct {
	Name      string  `sls:"name"`
	Enable    *bool   `sls:"enable"` // nil leaves it as it is
	Process   string  `sls:"sig"`    // in the command line of what an init script starts
	InitDelay float64 `sls:"init_delay"`
	NoBlock   bool    `sls:"no_block"` // do not wait for the end of it
	Enabled   any     `sls:"enabled"`  // a common slip, which would leave a service as it is
}

func (a *activity) slip() error {
	if a.Enabled == nil {
		return nil
	}
	return diag.WithHint(fmt.Errorf("service %s has the argument enabled, which is the name of another state", a.Name), "write `- enable: ...`")
}

// wait gives a service the time it needs to be up, or gone.
func (a *activity) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Duration(a.InitDelay * float64(time.Second))):
		return nil
	}
}

// bootVerb is what has to be done about a unit at boot, if anything. A unit that nothing can disable
// is left as it is, with a warning.
func (a *activity) bootVerb(u host.Unit) (verb host.BootVerb, warnings []string) {
	switch {
	case a.Enable == nil || *a.Enable == u.StartsAtBoot():
		return "", nil
	case *a.Enable:
		return host.Enable, nil
	}
	return disabling(u)
}

// disabling is the verb that keeps a unit from being started at boot.
func disabling(u host.Unit) (host.BootVerb, []string) {
	switch u.Boot {
	case "enabled", "enabled-runtime":
		return host.Disable, nil
	}
	return "", []string{fmt.Sprintf("%s is %s: other units start it, and it cannot be disabled; mask it to keep it from running", u.Name, u.Boot)}
}

// onlyAtBoot says whether a state can be about what starts at boot alone, since nothing runs here.
// Otherwise the error says why the state is skipped.
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

// setBoot makes a unit start at boot or not, if there is something to do.
func setBoot(ctx context.Context, h *host.Host, name string, verb host.BootVerb) error {
	if verb == "" {
		return nil
	}
	return h.Units.SetBoot(ctx, verb, name, false)
}

// changed is how all of them report a change: the service by name, and whether it is up.
func changed(name string, up bool) *value.Map { return value.NewMap(name, up) }
