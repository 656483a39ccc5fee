// Package virtualenv holds virtualenv.managed: virtual environments of Python, and what pip installs into them.
package virtualenv

import (
	"context"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/client"
	"github.com/corpus-agent/corpus-agent/state/module/pep440"
)

// Pip is pip.installed for one virtual environment.
type Pip interface {
	module.Resource
	// List gives what is installed, by normalized name.
	List(ctx context.Context, h *host.Host) (map[string]pep440.Distribution, error)
}

// Functions are the functions of virtualenv. pip makes the state that installs packages.
func Functions(pip func(client.EnvironmentPackages) Pip) module.Table {
	return module.Table{"managed": func() module.Resource { return &managed{pip: pip} }}
}
