package pip

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/client"
	"github.com/corpus-agent/corpus-agent/state/module/pep440"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// uptodate implements pip.uptodate: it upgrades all distributions to the newest version in the index.
type uptodate struct {
	pip
	Name string `sls:"name"`

	todo map[string]pep440.Distribution
}

func (p *uptodate) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if what, _, err := p.awaits(h); err != nil || what != "" {
		return module.Awaits(what, "upgrade what is old"), err
	}
	var err error
	if p.todo, err = p.list(ctx, h, "--outdated"); err != nil {
		return module.Diff{}, diag.Library.Hint(err, "look at the index that pip asks, and at the network")
	}
	if len(p.todo) == 0 {
		return module.Diff{Comment: "all is the newest there is"}, nil
	}
	m := value.NewMap()
	for _, name := range slices.Sorted(maps.Keys(p.todo)) {
		d := p.todo[name]
		m.Set(d.Name, value.NewMap("old", d.Version, "new", d.Latest))
	}
	return module.Diff{Changes: m, Comment: "would upgrade " + strings.Join(m.Names(), ", ")}, nil
}

func (p *uptodate) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	what, program, err := p.awaits(h)
	if err != nil || what != "" {
		return module.Report{}, client.OrMissing(err, program, what)
	}
	if err := p.do(ctx, h, program, append([]string{"install", "--upgrade"}, d.Changes.Names()...)...); err != nil {
		return module.Report{}, err
	}
	after, err := p.list(ctx, h)
	m := value.NewMap()
	for _, name := range d.Changes.Names() {
		if is := after[pep440.Normal(name)]; is.Version != p.todo[pep440.Normal(name)].Version {
			m.Set(name, value.NewMap("old", p.todo[pep440.Normal(name)].Version, "new", is.Version))
		}
	}
	return module.Report{Changes: m, Comment: "upgraded " + strings.Join(m.Names(), ", ")}, err
}
