package pip

import (
	"context"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module/client"
	"github.com/corpus-agent/corpus-agent/state/module/pep440"
)

// Environment is a pip.installed state for a virtual environment.
type Environment struct{ installed }

// Into returns the state that installs packages into a virtual environment.
func Into(p client.EnvironmentPackages, sources client.Sources) *Environment {
	return &Environment{installed{
		pip:  pip{BinEnv: p.Environment, User: p.User, Cwd: p.Cwd, EnvVars: p.EnvVars, Env: p.Env, sources: sources},
		Name: p.Environment, Pkgs: p.Pkgs, Requirements: p.Requirements, Upgrade: p.Upgrade,
		IgnoreInstalled: p.IgnoreInstalled,
		options: options{
			Proxy: p.Proxy, IndexURL: p.IndexURL, ExtraIndexURL: p.ExtraIndexURL, ExistsAction: p.ExistsAction,
			NoDeps: p.NoDeps, PreReleases: p.PreReleases, NoCacheDir: p.NoCacheDir, CacheDir: p.CacheDir, NoBinary: p.NoBinary,
		},
	}}
}

// List returns the installed distributions by normalized name.
func (e *Environment) List(ctx context.Context, h *host.Host) (map[string]pep440.Distribution, error) {
	return e.list(ctx, h)
}
