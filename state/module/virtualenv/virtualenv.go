// Package virtualenv implements virtualenv.managed, which creates Python virtual environments and installs
// packages into them with pip.
package virtualenv

import (
	"context"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/client"
	"github.com/corpus-agent/corpus-agent/state/module/pep440"
)

// Pip is a pip.installed state for a virtual environment.
type Pip interface {
	module.Resource
	// List returns the installed distributions by normalized name.
	List(ctx context.Context, h *host.Host) (map[string]pep440.Distribution, error)
}

// Functions returns the functions of virtualenv. pip returns the state that installs packages.
func Functions(pip func(client.EnvironmentPackages) Pip) module.Table {
	return module.Table{"managed": func() module.Resource { return &managed{pip: pip} }}
}
