package grains_test

import (
	"context"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/function"
	acts "github.com/corpus-agent/corpus-agent/state/function/grains"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/grains"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// keeper holds grains and runs the functions that change them.
type keeper struct {
	grains *value.Map
	function.Table
}

func (k keeper) Grain(path, delimiter string) (any, bool) {
	return value.Lookup(k.grains, path, delimiter)
}

func (k keeper) Call(ctx context.Context, name string, args []any, kwargs *value.Map) (any, error) {
	return k.Table.Call(ctx, name, args, kwargs)
}

func TestConformance(t *testing.T) {
	statetest.Run(t, statetest.Suite{
		State: "grains",
		Functions: func(h *statetest.Host) module.Table {
			known := value.NewMap("role", "web", "roles", value.NewList("web", "db"),
				"place", value.NewMap("rack", 3), "nothing", nil)
			facts := function.Facts{Grains: known, Host: h.Host}
			h.Watch("the grains", func() string { return value.Repr(known) })
			return grains.Functions(keeper{known, acts.Acting(&facts)})
		},
		Cases: statetest.Load(t, "../../../testdata/modules/system/grains.yaml"),
	})
}
