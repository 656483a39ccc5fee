// Package salt implements the filters, tests and globals that Salt adds to Jinja2, if they need only their arguments.
// Those that read files, names or addresses of the host are added to the options of the Env by callers that may access
// the host.
package salt

import "github.com/corpus-agent/corpus-agent/state/jinja"

// Filters returns Salt's filters.
func Filters() map[string]jinja.Filter {
	all := map[string]jinja.Filter{}
	for _, group := range []map[string]jinja.Filter{
		dataFilters(), dictFilters(), encodingFilters(), listFilters(), networkFilters(), randomFilters(), regexpFilters(),
		textFilters(),
	} {
		for name, f := range group {
			all[name] = f
		}
	}
	return all
}

// Tests returns Salt's tests.
func Tests() map[string]jinja.Test {
	return map[string]jinja.Test{
		"equalto": jinja.DefineTest("equalto", func(c *jinja.Call) (bool, error) { return c.Equal(c.Args[0], c.Args[1]) },
			jinja.Arg("value"), jinja.Arg("other")),
		"list": jinja.DefineTest("list", func(c *jinja.Call) (bool, error) {
			return isList(c.Args[0]), nil
		}, jinja.Arg("value")),
		"match": jinja.DefineTest("match", matchTest, regexpParams()...),
	}
}

// Globals returns Salt's functions for every template.
func Globals() map[string]any {
	return map[string]any{
		"odict":             jinja.Function("OrderedDict", odict),
		"raise":             jinja.Function("raise", raise),
		"show_full_context": jinja.Function("show_full_context", showFullContext),
	}
}
