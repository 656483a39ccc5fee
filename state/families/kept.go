package families

import (
	"context"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/module/action"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// keptGrains is the grains of a session for states that change them.
type keptGrains struct{ session *session.Session }

// Grain is part of grains.Keeper.
func (k keptGrains) Grain(path, delimiter string) (any, bool) {
	return value.Lookup(k.session.Grains, path, delimiter)
}

// Call is part of grains.Keeper.
func (k keptGrains) Call(ctx context.Context, name string, args []any, kwargs *value.Map) (any, error) {
	return k.session.Actions().Call(ctx, name, args, kwargs)
}

// callee is what module.run calls functions through.
type callee struct{ function.Table }

// Parameters is part of action.Callee.
func (c callee) Parameters(name string) ([]action.Parameter, error) {
	f, ok := c.Table[name]
	if !ok {
		return nil, c.Unknown(name)
	}
	all, err := f.Parameters()
	parameters := make([]action.Parameter, len(all))
	for i, p := range all {
		parameters[i] = action.Parameter{Name: p.Name, Required: !p.Optional, Rest: p.Kind == function.Rest,
			Keywords: p.Kind == function.Keywords}
	}
	return parameters, err
}
