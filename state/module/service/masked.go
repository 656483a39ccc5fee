package service

import (
	"context"
	"fmt"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// mask implements service.masked and service.unmasked: it prevents every start of a service, or allows it again.
type mask struct {
	Name    string `sls:"name"`
	Runtime bool   `sls:"runtime"` // until the next boot

	on bool
}

func (m *mask) verb() host.BootVerb {
	if m.on {
		return host.Mask
	}
	return host.Unmask
}

func (m *mask) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	u, err := h.Units.Unit(ctx, m.Name, "")
	if err != nil {
		return module.Diff{}, err
	}
	is, what := u.Masked, "masked"
	if m.Runtime {
		is, what = u.MaskedRuntime, "runtime masked"
	}
	if is == m.on {
		return module.Diff{Comment: map[bool]string{true: m.Name + " is " + what, false: m.Name + " is not " + what}[is]}, nil
	}
	return module.Diff{Changes: value.NewMap(what, value.NewMap("old", is, "new", m.on)),
		Comment: fmt.Sprintf("would %s %s", m.verb(), m.Name)}, nil
}

func (m *mask) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if err := h.Units.SetBoot(ctx, m.verb(), m.Name, m.Runtime); err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: d.Changes, Comment: fmt.Sprintf("done: %s %s", m.verb(), m.Name)}, nil
}
