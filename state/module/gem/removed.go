package gem

import (
	"context"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/client"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// removed implements gem.removed.
type removed struct{ gem }

func (g *removed) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if err := g.Valid(); err != nil {
		return module.Diff{}, err
	}
	if what, err := client.Awaits(h, g.program()); err != nil || what != "" {
		return module.Diff{Comment: what + " does not exist, so nothing is installed"}, err
	}
	have, err := g.versions(ctx, h)
	if err != nil || len(have) == 0 {
		return module.Diff{Comment: g.Name + " is not installed"}, err
	}
	return module.Diff{Changes: value.NewMap(g.Name, "Removed"), Comment: "would remove " + g.Name}, nil
}

func (g *removed) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if _, err := g.program().Do(ctx, h, "uninstall", g.Name, "--all", "--executables"); err != nil {
		return module.Report{}, err
	}
	return client.Done(d, "removed %s", g.Name), nil
}
