package service

import (
	"context"
	"fmt"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// atBoot implements service.enabled and service.disabled: it sets whether a service starts at boot.
type atBoot struct {
	Name string `sls:"name"`

	on bool
}

func (a *atBoot) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	verb, d, err := a.todo(ctx, h)
	if err != nil || verb == "" {
		return d, err
	}
	d.Planned, d.Comment = value.NewMap(), fmt.Sprintf("would %s %s", verb, a.Name)
	if d.Unknown {
		d.Comment += ", if an earlier state brings it"
		d.Missing = noUnit(a.Name)
		return d, nil
	}
	d.Changes = changed(a.Name, true)
	return d, nil
}

// noUnit returns the missing prerequisite of a state whose unit does not exist.
func noUnit(name string) []error {
	err := diag.Prerequisite.Hint(fmt.Errorf("there is no unit %s on this host", name),
		"correct the name, or require the state that brings the unit")
	return []error{host.WithMissing(err, host.AUnit, name)}
}

// todo compares the unit with the state. A unit that does not exist counts as disabled.
func (a *atBoot) todo(ctx context.Context, h *host.Host) (verb host.BootVerb, d module.Diff, err error) {
	u, err := h.Units.Unit(ctx, a.Name, "")
	switch {
	case err != nil:
		return "", d, err
	case !u.Found:
		d.Unknown = a.on
		verb = map[bool]host.BootVerb{true: host.Enable}[a.on]
	case a.on == u.StartsAtBoot():
	case a.on:
		verb = host.Enable
	default:
		verb, d.Warnings = disabling(u)
	}
	switch {
	case len(d.Warnings) > 0:
		d.Comment = a.Name + " is left unchanged"
	case verb == "":
		d.Comment = map[bool]string{true: a.Name + " starts at boot", false: a.Name + " does not start at boot"}[a.on]
	}
	return verb, d, nil
}

func (a *atBoot) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	verb, _, err := a.todo(ctx, h)
	if err != nil || verb == "" {
		return module.Report{}, err
	}
	if err := h.Units.SetBoot(ctx, verb, a.Name, false); err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: changed(a.Name, true), Comment: fmt.Sprintf("done: %s %s", verb, a.Name)}, nil
}
