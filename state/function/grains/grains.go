// Package grains implements grains.*: the grains of the host, and changes to the file of grains that an operator
// maintains.
package grains

import (
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/value"
)

type grains struct{ *function.Facts }

// Functions returns the functions of grains that templates may call.
func Functions(f *function.Facts) function.Table {
	g := grains{f}
	return function.Table{
		"grains.get":       function.Of("key, default='', delimiter=':', ordered=True", g.get),
		"grains.fetch":     function.Of("key, default='', delimiter=':', ordered=True", g.get),
		"grains.has_value": function.Of("key", g.has),
		"grains.items":     function.Of("sanitize=False", g.items),
		"grains.item":      function.Of("*args, **kwargs", g.item),
		"grains.ls":        function.Of("", g.ls),
		"grains.keys":      function.Of("", g.ls),
		"grains.equals":    function.Of("key, value", g.equals),
		"grains.filter_by": function.Of("lookup_dict, grain='os_family', merge=None, default='default', base=None",
			g.filterBy),
	}
}

func (g grains) get(key, fallback any, delimiter string, ordered any) any {
	data := g.Grains
	if ordered != true {
		data = value.Copy(data).(*value.Map)
	}
	return function.Traverse(data, key, fallback, delimiter)
}

func (g grains) has(key any) bool {
	_, ok := function.Find(g.Grains, key, ":")
	return ok
}

func (g grains) items(sanitize any) *value.Map {
	all := value.NewMap()
	all.Update(g.Grains)
	if function.IsTrue(sanitize) {
		hideIdentity(all)
	}
	return all
}

func (g grains) item(keys []any, options *value.Map) (*value.Map, error) {
	found, err := function.Pick(g.Grains, keys, options)
	if err == nil && function.IsTrue(options.Value("sanitize")) {
		hideIdentity(found)
	}
	return found, err
}

func (g grains) ls() []string {
	names := g.Grains.Names()
	slices.Sort(names)
	return names
}

func (g grains) equals(key, v any) bool {
	return value.Str(v) == value.Str(function.Traverse(g.Grains, key, "", ":"))
}

func (g grains) filterBy(lookup *value.Map, grain, merge, fallback, base any) (any, error) {
	return function.FilterBy(g.Grains, function.Filter{Lookup: lookup, Key: grain, Merge: merge, Fallback: fallback,
		Base: base})
}

// hideIdentity replaces the grains that identify a host.
func hideIdentity(grains *value.Map) {
	instead := map[string]string{
		"domain": "DOMAINNAME", "fqdn": "MINION.DOMAINNAME", "id": "MINION.DOMAINNAME",
		"host": "MINION", "localhost": "MINION", "nodename": "MINION",
	}
	for name, text := range instead {
		if grains.Has(name) {
			grains.Set(name, text)
		}
	}
	if serial, ok := grains.Value("serialnumber").(string); ok {
		shown := len(serial) * 3 / 4
		grains.Set("serialnumber", serial[:shown]+strings.Repeat("X", len(serial)-shown))
	}
}
