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

// running implements service.running: it starts a service and, with enable, sets whether it starts at boot.
type running struct {
	activity
	Unmask        bool `sls:"unmask"`
	UnmaskRuntime bool `sls:"unmask_runtime"`
	// These determine the reaction to a change of a watched state.
	Reload      bool `sls:"reload"`
	Force       bool `sls:"force"`
	FullRestart bool `sls:"full_restart"` // accepted without effect
}

// todo holds the changes that a service needs.
type todo struct {
	start    bool
	unmask   []bool // whether to unmask until the next boot; both may be needed
	boot     host.BootVerb
	warnings []string
}

func (t *todo) nothing() bool { return !t.start && len(t.unmask) == 0 && t.boot == "" }

func (r *running) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if err := r.slip(); err != nil {
		return module.Diff{}, err
	}
	t, found, err := r.todo(ctx, h)
	d := module.Diff{Warnings: t.warnings}
	switch {
	case err != nil:
		return d, err
	case !found:
		awaited := r.awaited()
		awaited.Warnings = d.Warnings
		return awaited, nil
	case t.nothing():
		d.Comment = r.Name + " is up"
	default:
		d.Changes, d.Planned, d.Comment = changed(r.Name, true), value.NewMap(), "would "+r.describe(t)
	}
	return d, nil
}

// awaited returns the diff of a dry run for a unit that does not exist.
func (r *running) awaited() module.Diff {
	return module.Diff{
		Unknown: true, Planned: value.NewMap(), Missing: noUnit(r.Name),
		Comment: fmt.Sprintf("%s does not exist; if an earlier state brings it, it would be started", r.Name),
	}
}

// todo compares the unit with the state.
func (r *running) todo(ctx context.Context, h *host.Host) (t todo, found bool, err error) {
	boot, err := r.onlyAtBoot(h, "starting")
	if err != nil {
		return t, false, err
	}
	u, err := h.Units.Unit(ctx, r.Name, r.Process)
	if err != nil || !u.Found && !u.Masked {
		return t, false, err
	}
	t.start = !boot && !u.Running()
	if boot {
		t.warnings = []string{fmt.Sprintf("%s is not started: nothing runs in a chroot", r.Name)}
	}
	if (r.Unmask || r.UnmaskRuntime) && u.Masked {
		t.unmask = append(t.unmask, false)
	}
	if r.UnmaskRuntime && u.MaskedRuntime {
		t.unmask = append(t.unmask, true)
	}
	verb, warnings := r.bootVerb(u)
	t.boot, t.warnings = verb, append(t.warnings, warnings...)
	return t, true, nil
}

func (r *running) describe(t todo) string {
	switch {
	case t.start && t.boot != "":
		return fmt.Sprintf("start and %s %s", t.boot, r.Name)
	case t.start:
		return "start " + r.Name
	case t.boot != "":
		return fmt.Sprintf("%s %s", t.boot, r.Name)
	}
	return "unmask " + r.Name
}

func (r *running) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	t, found, err := r.todo(ctx, h)
	if err != nil {
		return module.Report{}, err
	}
	if !found {
		// The error of the command says why the unit is missing, and may suggest another name.
		t.start, t.boot = h.Units.Allowed("") == nil, map[bool]host.BootVerb{true: host.Enable}[r.Enable != nil && *r.Enable]
	}
	for _, runtime := range t.unmask {
		if err := h.Units.SetBoot(ctx, host.Unmask, r.Name, runtime); err != nil {
			return module.Report{}, err
		}
	}
	// Like Salt, do not enable a service that fails to start, since the next boot would start it.
	if t.start {
		if err := r.start(ctx, h); err != nil {
			return module.Report{}, err
		}
	}
	if err := setBoot(ctx, h, r.Name, t.boot); err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: changed(r.Name, true), Comment: "done: " + r.describe(t)}, nil
}

// start starts the service. It returns an error if the service does not stay up.
func (r *running) start(ctx context.Context, h *host.Host) error {
	started := time.Now()
	if err := h.Units.Act(ctx, host.Start, r.Name, !r.NoBlock); err != nil {
		return err
	}
	if err := r.wait(ctx); err != nil {
		return err
	}
	if err := r.stays(ctx, h, started); err != nil {
		return err
	}
	u, err := h.Units.Unit(ctx, r.Name, r.Process)
	if err != nil || u.Running() || r.NoBlock && u.Active == "activating" {
		return err
	}
	return diag.Unit.Hint(fmt.Errorf("%s was started, and is %s now", r.Name, u.Active),
		"a unit that does its work and ends needs RemainAfterExit=yes to count as up, or a cmd.run state instead")
}

// stays returns an error if a started service is no longer up, unless no_block is set.
func (r *running) stays(ctx context.Context, h *host.Host, started time.Time) error {
	if r.NoBlock {
		return nil
	}
	return h.Units.Stays(ctx, r.Name, started)
}

// Watched returns a state that restarts or reloads a running service, and starts one that is not running.
func (r *running) Watched() module.Resource { return &restart{running: *r} }
