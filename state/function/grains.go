package function

import (
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/value"
)

type grains struct{ *Facts }

func grainsTable(f *Facts) Table {
	g := grains{f}
	return Table{
		"grains.get":       Of("key, default='', delimiter=':', ordered=True", g.get),
		"grains.fetch":     Of("key, default='', delimiter=':', ordered=True", g.get),
		"grains.has_value": Of("key", g.has),
		"grains.items":     Of("sanitize=False", g.items),
		"grains.item":      Of("*args, **kwargs", g.item),
		"grains.ls":        Of("", g.ls),
		"grains.keys":      Of("", g.ls),
		"grains.equals":    Of("key, value", g.equals),
		"grains.filter_by": Of("lookup_dict, grain='os_family', merge=None, default='default', base=None", g.filterBy),
	}
}

func (g grains) get(key, fallback any, delimiter string, ordered any) any {
	data := g.Grains
	if ordered != true {
		data = value.Copy(data).(*value.Map)
	}
	return traverse(data, key, fallback, delimiter)
}

func (g grains) has(key any) bool {
	_, ok := find(g.Grains, key, ":")
	return ok
}

func (g grains) items(sanitize any) *value.Map {
	all := value.NewMap()
	all.Update(g.Grains)
	if isTrue(sanitize) {
		hideIdentity(all)
	}
	return all
}

func (g grains) item(keys []any, options *value.Map) (*value.Map, error) {
	found, err := pick(g.Grains, keys, options)
	if err == nil && isTrue(options.Value("sanitize")) {
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
	return value.Str(v) == value.Str(traverse(g.Grains, key, "", ":"))
}

func (g grains) filterBy(lookup *value.Map, grain, merge, fallback, base any) (any, error) {
	return filterBy(g.Grains, filter{lookup: lookup, key: grain, merge: merge, fallback: fallback, base: base})
}

// hideIdentity puts something else in the place of what would tell who a host is.
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
