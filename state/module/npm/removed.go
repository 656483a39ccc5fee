package npm

import (
	"context"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/client"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// removed implements npm.removed.
type removed struct {
	npm
	Name string `sls:"name"`
}

func (n *removed) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if what, err := client.Awaits(h, n.program(nil)); err != nil || what != "" {
		return module.Diff{Comment: what + " does not exist, so nothing is installed"}, err
	}
	have, err := n.list(ctx, h, nil)
	if err != nil {
		return module.Diff{}, err
	}
	if _, ok := have[n.Name]; !ok {
		return module.Diff{Comment: n.Name + " is not installed"}, nil
	}
	return module.Diff{Changes: value.NewMap(n.Name, "Removed"), Comment: "would remove " + n.Name}, nil
}

func (n *removed) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	args := []string{"uninstall", n.Name}
	if n.Dir == "" {
		args = append(args, "--global")
	}
	if _, err := n.program(nil).Do(ctx, h, args...); err != nil {
		return module.Report{}, err
	}
	return client.Done(d, "removed %s", n.Name), nil
}
