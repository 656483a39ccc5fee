package service

import (
	"context"
	"errors"
	"fmt"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// dead implements service.dead: it stops a service and, with enable, sets whether it starts at boot.
type dead struct{ activity }

func (d *dead) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if err := d.slip(); err != nil {
		return module.Diff{}, err
	}
	stop, verb, warnings, err := d.todo(ctx, h)
	diff := module.Diff{Warnings: warnings}
	switch {
	case err != nil:
		return diff, err
	case !stop && verb == "":
		diff.Comment = d.Name + " is not up"
		return diff, nil
	case stop && verb != "":
		diff.Comment = fmt.Sprintf("would stop and %s %s", verb, d.Name)
	case stop:
		diff.Comment = "would stop " + d.Name
	default:
		diff.Comment = fmt.Sprintf("would %s %s", verb, d.Name)
	}
	// Like Salt, report a change at boot instead of the stop.
	diff.Changes, diff.Planned = changed(d.Name, verb != ""), value.NewMap()
	return diff, nil
}

// todo compares the unit with the state. There is nothing to do for a unit that does not exist.
func (d *dead) todo(ctx context.Context, h *host.Host) (stop bool, verb host.BootVerb, warnings []string, err error) {
	boot, err := d.onlyAtBoot(h, "stopping")
	if err != nil {
		return false, "", nil, err
	}
	u, err := h.Units.Unit(ctx, d.Name, d.Process)
	if err != nil || !u.Found {
		return false, "", nil, err
	}
	verb, warnings = d.bootVerb(u)
	return !boot && isUp(u), verb, warnings, nil
}

// isUp reports whether a unit is running, starting or waiting for an automatic restart.
func isUp(u host.Unit) bool { return u.Running() || u.Active == "activating" }

func (d *dead) Apply(ctx context.Context, h *host.Host, diff module.Diff) (module.Report, error) {
	stop, verb, _, err := d.todo(ctx, h)
	if err != nil {
		return module.Report{}, err
	}
	var stopErr error
	if stop {
		stopErr = d.stop(ctx, h)
	}
	bootErr := setBoot(ctx, h, d.Name, verb)
	if stopErr != nil && verb == "" || bootErr != nil {
		return module.Report{}, errors.Join(stopErr, bootErr)
	}
	return module.Report{Changes: diff.Changes, Comment: d.Name + " is not up"}, stopErr
}

func (d *dead) stop(ctx context.Context, h *host.Host) error {
	if err := h.Units.Act(ctx, host.Stop, d.Name, !d.NoBlock); err != nil {
		return err
	}
	if err := d.wait(ctx); err != nil || d.NoBlock {
		return err
	}
	u, err := h.Units.Unit(ctx, d.Name, d.Process)
	if err != nil || !isUp(u) {
		return err
	}
	return diag.Unit.Hint(fmt.Errorf("%s was stopped, and is %s again", d.Name, u.Active),
		"see which unit or socket starts it")
}

// Watched returns a state that stops a service that has come up again.
func (d *dead) Watched() module.Resource { return &stopped{*d} }

// stopped implements the reaction of service.dead to a change of a watched state. Its changes report the success of the
// stop, not the state of the service.
type stopped struct{ dead }

func (s *stopped) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	s.Enable = nil
	stop, _, _, err := s.todo(ctx, h)
	if err != nil || !stop {
		return module.Diff{Comment: s.Name + " is not up"}, err
	}
	return module.Diff{Changes: changed(s.Name, true), Planned: value.NewMap(), Comment: "would stop " + s.Name}, nil
}
