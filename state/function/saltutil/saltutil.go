// Package saltutil implements saltutil.*: the refreshing of caches that this engine does not have.
package saltutil

import (
	"path"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Functions returns the functions with which formulas make a minion fetch its extensions and reload its data. There is
// no master, and every run reads everything again, so these functions do nothing. Those that fetch extensions return
// the same as in Salt on a host without extensions: the names of the files in the state tree.
func Functions(f *function.Facts) function.Table {
	t := function.Table{
		"saltutil.sync_all": function.Of("saltenv=None, refresh=True, extmod_whitelist=None, extmod_blacklist=None",
			func(saltenv, _, _, _ any) (*value.Map, error) { return syncAll(f, saltenv) }),
		"saltutil.list_extmods": function.Of("", func() (*value.Map, error) { return listed(f) }),
		"saltutil.refresh_pillar": function.Of("wait=False, timeout=30, clean_cache=True", func(_, _, _ any) bool {
			return false // as a masterless Salt, which has no minion that could refresh it
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
			func(saltenv, _, _, _ any) (*value.List, error) { return inTree(f, kind, saltenv) })
	}
	return t
}

// extensions returns the kinds of programs that Salt fetches, in its order.
func extensions() []string {
	return []string{"clouds", "beacons", "modules", "states", "sdb", "grains", "renderers", "returners", "output", "utils",
		"log_handlers",
		"executors", "proxymodules", "engines", "thorium", "serializers", "matchers", "pillar"}
}

func syncAll(f *function.Facts, saltenv any) (*value.Map, error) {
	all := value.NewMap()
	for _, kind := range extensions() {
		names, err := inTree(f, kind, saltenv)
		if err != nil {
			return nil, err
		}
		all.Set(kind, names)
	}
	return all, nil
}

// listed returns the names of the extensions in the state tree by their kinds. A part of a package has its own name, as
// under Salt.
func listed(f *function.Facts) (*value.Map, error) {
	all := value.NewMap()
	for _, kind := range extensions() {
		names, err := inTree(f, kind, nil)
		if err != nil {
			return nil, err
		}
		var last []string
		for _, item := range names.Items {
			full := value.Str(item)
			last = append(last, full[strings.LastIndexByte(full, '.')+1:])
		}
		slices.Sort(last)
		if len(last) > 0 {
			all.Set(kind, value.Strings(slices.Compact(last)...))
		}
	}
	return all, nil
}

// inTree lists the extensions of a kind in the state tree as Salt names them: modules.mine for _modules/mine.py.
func inTree(f *function.Facts, kind string, saltenv any) (*value.List, error) {
	var names []string
	if f.States == nil {
		return value.NewList(), nil
	}
	for _, env := range environments(f, saltenv) {
		files, err := f.States.Files(env)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			rest, in := strings.CutPrefix(file, "_"+kind+"/")
			if in && path.Ext(rest) == ".py" && !strings.HasPrefix(path.Base(rest), ".") {
				names = append(names, kind+"."+strings.ReplaceAll(strings.TrimSuffix(rest, ".py"), "/", "."))
			}
		}
	}
	slices.Sort(names)
	return value.Strings(slices.Compact(names)...), nil
}

// environments returns the environments that saltenv names, as a list or separated by commas, as far as the tree has
// them. If saltenv names none, it returns all environments of the tree.
func environments(f *function.Facts, saltenv any) []string {
	var named []string
	switch v := saltenv.(type) {
	case string:
		named = strings.Split(v, ",")
	case *value.List:
		for _, item := range v.Items {
			named = append(named, value.Str(item))
		}
	default:
		return f.States.Envs()
	}
	return slices.DeleteFunc(named, func(env string) bool { return !f.States.Has(env) })
}
