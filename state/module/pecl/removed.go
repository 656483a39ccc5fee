package pecl

import (
	"context"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/client"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// removed implements pecl.removed.
type removed struct{ pecl }

func (p *removed) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if what, err := client.Awaits(h, p.program()); err != nil || what != "" {
		return module.Diff{Comment: what + " does not exist, so nothing is installed"}, err
	}
	have, err := p.version(ctx, h)
	if err != nil || have == "" {
		return module.Diff{Comment: p.Name + " is not installed"}, err
	}
	return module.Diff{Changes: value.NewMap(p.Name, "Removed"), Comment: "would remove " + p.Name}, nil
}

func (p *removed) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if _, err := p.program().Do(ctx, h, "uninstall", p.Name); err != nil {
		return module.Report{}, err
	}
	return client.Done(d, "removed %s", p.Name), nil
}
