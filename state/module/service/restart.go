package service

import (
	"context"
	"fmt"
	"time"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// restart implements the reaction of service.running to a change of a watched state.
type restart struct{ running }

// verb returns the action: start, restart or reload.
func (r *restart) verb(u host.Unit) host.UnitVerb {
	switch {
	case !u.Running():
		return host.Start
	case r.Reload && r.Force:
		return host.ReloadOrRestart
	case r.Reload:
		return host.Reload
	}
	return host.Restart
}

func (r *restart) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if err := h.Units.Allowed("restarting service " + r.Name); err != nil {
		return module.Diff{}, err
	}
	u, err := h.Units.Unit(ctx, r.Name, r.Process)
	if err != nil {
		return module.Diff{}, err
	}
	if !u.Found && !u.Masked {
		return r.awaited(), nil
	}
	return module.Diff{Changes: changed(r.Name, true), Planned: value.NewMap(),
		Comment: fmt.Sprintf("would %s %s", r.verb(u), r.Name)}, nil
}

func (r *restart) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	u, err := h.Units.Unit(ctx, r.Name, r.Process)
	if err != nil {
		return module.Report{}, err
	}
	verb := r.verb(u)
	if verb == host.Start && u.Found {
		// systemd does not start a unit again that is partly up.
		if err := h.Units.Act(ctx, host.Stop, r.Name, true); err != nil {
			return module.Report{}, err
		}
	}
	started := time.Now()
	if err := h.Units.Act(ctx, verb, r.Name, !r.NoBlock); err != nil {
		return module.Report{}, err
	}
	report := module.Report{Changes: changed(r.Name, true), Comment: fmt.Sprintf("done: %s %s", verb, r.Name)}
	if err := r.wait(ctx); err != nil || verb == host.Reload {
		return report, err
	}
	return report, r.stays(ctx, h, started)
}
