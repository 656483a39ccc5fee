package pip

import (
	"context"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/client"
	"github.com/corpus-agent/corpus-agent/state/module/pep440"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// removed implements pip.removed.
type removed struct {
	pip
	Name         string `sls:"name"`
	Requirements any    `sls:"requirements"`
	Log          string `sls:"log"`
	Proxy        any    `sls:"proxy"`
	Timeout      any    `sls:"timeout"`

	todo []string
}

func (p *removed) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if what, _, err := p.awaits(h); err != nil || what != "" {
		return module.Diff{Comment: what + " does not exist, so nothing is installed"}, err
	}
	have, err := p.list(ctx, h)
	if err != nil {
		return module.Diff{}, err
	}
	wanted := []pep440.Requirement{pep440.ParseRequirement(p.Name)}
	if p.Requirements != nil {
		wanted = nil
	}
	for _, file := range client.List(p.Requirements) {
		list, _, err := p.requirements(ctx, h, file, 0)
		if err != nil {
			return module.Diff{}, err
		}
		wanted = append(wanted, list...)
	}
	for _, r := range wanted {
		if _, ok := have[r.Name]; ok {
			p.todo = append(p.todo, r.Name)
		}
	}
	if len(p.todo) == 0 {
		return module.Diff{Comment: p.Name + " is not installed"}, nil
	}
	return module.Diff{Changes: value.NewMap(p.Name, "Removed"),
		Comment: "would remove " + strings.Join(p.todo, ", ")}, nil
}

func (p *removed) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	program, _ := p.program(h)
	if err := p.do(ctx, h, program, append([]string{"uninstall", "--yes"}, p.todo...)...); err != nil {
		return module.Report{}, err
	}
	return client.Done(d, "removed %s", strings.Join(p.todo, ", ")), nil
}
