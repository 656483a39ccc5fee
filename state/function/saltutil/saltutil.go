// Package saltutil implements saltutil.*: the refreshing of caches that this engine does not have.
package saltutil

import (
	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Functions returns the functions with which formulas make a minion fetch its extensions and reload its data. They
// do nothing here: there is no master, and every run reads everything again.
func Functions() function.Table {
	t := function.Table{
		"saltutil.sync_all": function.Of("saltenv=None, refresh=True, extmod_whitelist=None, extmod_blacklist=None",
			syncAll),
		"saltutil.refresh_pillar": function.Of("wait=False, timeout=30, clean_cache=True", func(_, _, _ any) bool {
			return true
		}),
		"saltutil.refresh_modules": function.Of("**kwargs", func(*value.Map) bool { return true }),
		"saltutil.refresh_grains":  function.Of("**kwargs", func(*value.Map) bool { return true }),
		"saltutil.clear_cache":     function.Of("", func() bool { return true }),
		"saltutil.running":         function.Of("", func() *value.List { return value.NewList() }),
		"saltutil.is_running":      function.Of("fun", func(any) *value.List { return value.NewList() }),
		"saltutil.find_job":        function.Of("jid", func(any) *value.Map { return value.NewMap() }),
	}
	for _, kind := range extensions() {
		t["saltutil.sync_"+kind] = function.Of("saltenv=None, refresh=True, extmod_whitelist=None, extmod_blacklist=None",
			func(_, _, _, _ any) *value.List { return value.NewList() })
	}
	return t
}

// extensions returns the kinds of programs that Salt fetches, in its order.
func extensions() []string {
	return []string{"clouds", "beacons", "modules", "states", "sdb", "grains", "renderers", "returners", "output", "utils",
		"log_handlers",
		"executors", "proxymodules", "engines", "thorium", "serializers", "matchers", "pillar"}
}

func syncAll(_, _, _, _ any) *value.Map {
	none := value.NewMap()
	for _, kind := range extensions() {
		none.Set(kind, value.NewList())
	}
	return none
}
