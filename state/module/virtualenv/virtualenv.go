// Package virtualenv holds virtualenv.managed: virtual environments of Python, and what pip installs into them.
package virtualenv

import (
	"context"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/pep440"
)

// Packages are what pip is to install into a virtual environment.
type Packages struct {
	Environment     string // its directory
	User            string
	Cwd             string
	EnvVars         any
	Env             string // of the state tree
	Pkgs            any
	Requirements    any
	Upgrade         bool
	IgnoreInstalled bool
	Proxy           string
	IndexURL        string
	ExtraIndexURL   any
	ExistsAction    string
	NoDeps          bool
	PreReleases     bool
	NoCacheDir      bool
	CacheDir        string
	NoBinary        any
}

// Pip is pip.installed for one virtual environment.
type Pip interface {
	module.Resource
	// List gives what is installed, by normalized name.
	List(ctx context.Context, h *host.Host) (map[string]pep440.Distribution, error)
}

// Functions are the functions of virtualenv. pip makes the state that installs packages.
func Functions(pip func(Packages) Pip) module.Table {
	return module.Table{"managed": func() module.Resource { return &managed{pip: pip} }}
}
