package families

import (
	"context"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/module/action"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// keptGrains implements grains.Keeper with the grains of a session.
type keptGrains struct{ session *session.Session }

// Grain implements grains.Keeper.
func (k keptGrains) Grain(path, delimiter string) (any, bool) {
	return value.Lookup(k.session.Grains, path, delimiter)
}

// Call implements grains.Keeper.
func (k keptGrains) Call(ctx context.Context, name string, args []any, kwargs *value.Map) (any, error) {
	return k.session.Actions().Call(ctx, name, args, kwargs)
}

// callee lets module.run call functions.
type callee struct{ session.TreeFunctions }

// Parameters implements action.Callee.
func (c callee) Parameters(name string) ([]action.Parameter, error) {
	all, err := c.TreeFunctions.Parameters(name)
	parameters := make([]action.Parameter, len(all))
	for i, p := range all {
		parameters[i] = action.Parameter{Name: p.Name, Required: !p.Optional, Rest: p.Kind == function.Rest,
			Keywords: p.Kind == function.Keywords}
	}
	return parameters, err
}
