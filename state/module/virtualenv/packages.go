package virtualenv

import (
	"context"
	"slices"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/client"
	"github.com/corpus-agent/corpus-agent/state/module/pep440"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// packages returns the packages to install into the environment.
func (v *managed) packages() *packages {
	return &packages{name: v.Name, asked: v.asks(), pip: v.pip(client.EnvironmentPackages{
		Environment: v.Name, User: v.User, Cwd: v.Cwd, EnvVars: v.EnvVars, Env: v.Env,
		Pkgs: v.PipPkgs, Requirements: v.Requirements, Upgrade: v.PipUpgrade, IgnoreInstalled: v.PipIgnoreInstalled,
		Proxy: v.Proxy, IndexURL: v.IndexURL, ExtraIndexURL: v.ExtraIndexURL, ExistsAction: v.PipExistsAction,
		NoDeps: v.NoDeps, PreReleases: v.PreReleases, NoCacheDir: v.PipNoCacheDir,
		CacheDir: v.PipCacheDir, NoBinary: v.NoBinary,
	})}
}

// packages is a resource that installs packages into a virtual environment. It reports the distributions that are new
// or have another version.
type packages struct {
	name  string
	pip   Pip
	asked bool
}

func (p *packages) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if !p.asked {
		return module.Diff{Comment: p.name + " is there"}, nil
	}
	d, err := p.pip.Check(ctx, h)
	if err == nil && !d.Empty() { // the dependencies are unknown
		d = module.Diff{Unknown: true, Planned: value.NewMap(), Comment: d.Comment}
	}
	return d, err
}

// install installs missing packages and adds the distributions that are new or have another version to changes.
func (p *packages) install(ctx context.Context, h *host.Host, changes *value.Map) error {
	d, err := p.Check(ctx, h)
	if err != nil || d.Empty() {
		return err
	}
	before, err := p.pip.List(ctx, h)
	if err != nil {
		return err
	}
	if _, err := p.pip.Apply(ctx, h, d); err != nil {
		return err
	}
	after, err := p.pip.List(ctx, h)
	if err != nil {
		return err
	}
	came, gone := difference(after, before), difference(before, after)
	if came.Len()+gone.Len() > 0 {
		changes.Set("packages", value.NewMap("new", came, "old", gone))
	}
	return nil
}

// difference returns the distributions of a that b does not have in the same version, sorted.
func difference(a, b map[string]pep440.Distribution) *value.List {
	var list []string
	for name, d := range a {
		if b[name].Version != d.Version {
			list = append(list, d.Name+"=="+d.Version)
		}
	}
	slices.Sort(list)
	return value.Strings(list...)
}
