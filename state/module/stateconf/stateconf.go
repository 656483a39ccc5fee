// Package stateconf has the states stateconf.set and stateconf.context. They change nothing: the renderer stateconf
// reads their arguments (see package render).
package stateconf

import (
	"context"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Functions returns the functions of stateconf.
func Functions() module.Table {
	set := func() module.Resource { return &parameters{} }
	return module.Table{"set": set, "context": set}
}

// parameters implements stateconf.set, with any arguments.
type parameters struct {
	All *value.Map `sls:"*"`
}

// Check implements module.Resource.
func (*parameters) Check(context.Context, *host.Host) (module.Diff, error) { return module.Diff{}, nil }

// Apply implements module.Resource.
func (*parameters) Apply(context.Context, *host.Host, module.Diff) (module.Report, error) {
	return module.Report{}, nil
}
