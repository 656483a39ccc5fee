// Package defaults implements defaults.*: the defaults.yaml of a formula, and merging of such values.
package defaults

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/value"
)

type defaults struct{ *function.Facts }

// Functions returns the functions of defaults that templates may call.
func Functions(f *function.Facts) function.Table {
	d := defaults{f}
	return function.Table{
		"defaults.get":   function.Of("key, default=''", d.get),
		"defaults.merge": function.Of("dest, src, merge_lists=False, in_place=True, convert_none=True", mergeDefaults),
		"defaults.update": function.Of("dest, defaults, merge_lists=True, in_place=True, convert_none=True",
			updateDefaults),
		"defaults.deepcopy": function.Of("source", value.Copy),
	}
}

// get looks up core:users:root in the defaults.yaml or defaults.json of the formula core.
func (d defaults) get(_ context.Context, key string, fallback any) (any, error) {
	formula, rest, deeper := strings.Cut(key, ":")
	data, err := d.load(formula)
	if err != nil {
		return nil, err
	}
	if deeper && rest != "" {
		return function.Traverse(data, rest, fallback, ":"), nil
	}
	return data, nil
}

// load returns the defaults of a formula, or nil if it has none.
func (d defaults) load(formula string) (any, error) {
	if d.States == nil {
		return nil, errors.New("there is no state tree")
	}
	env := d.Environment("")
	for _, name := range []string{formula + "/defaults.yaml", formula + "/defaults.json"} {
		if _, ok, err := d.States.Find(env, name); err != nil {
			return nil, err
		} else if !ok {
			continue
		}
		data, file, err := d.States.Read(env, name)
		if err != nil {
			return nil, fmt.Errorf("reading defaults: %w", err)
		}
		return parse(name, string(data), file)
	}
	return nil, nil
}

// parse reads defaults, as JSON if the name ends with .json, and as YAML otherwise. An empty file has no defaults.
func parse(name, text, file string) (any, error) {
	read := function.FromYAML
	if strings.HasSuffix(name, ".json") {
		read = function.FromJSON
	}
	v, err := read(text, file)
	if err == nil && !value.Truth(v) {
		v = value.NewMap()
	}
	return v, err
}

// mergeDefaults merges src into dest, or into a copy of it.
func mergeDefaults(dest, src any, mergeLists, inPlace, noneIsEmpty bool) (any, error) {
	if src == nil && noneIsEmpty {
		src = value.NewMap()
	}
	if dest == nil && noneIsEmpty {
		if inPlace {
			return nil, function.TypeError("None cannot be merged into; give a mapping, or in_place=False")
		}
		dest = value.NewMap()
	}
	if !inPlace {
		dest = value.Copy(dest)
	}
	return function.Update(dest, src, true, mergeLists)
}

// updateDefaults adds defaults to every value of dest, which is a mapping of mappings.
func updateDefaults(dest, defaults any, mergeLists, inPlace, noneIsEmpty bool) (any, error) {
	if dest == nil && inPlace {
		return nil, function.TypeError("None cannot be updated; give a mapping, or in_place=False")
	}
	if !inPlace {
		if dest == nil && noneIsEmpty {
			dest = value.NewMap()
		}
		dest = value.Copy(dest)
	}
	if defaults == nil && noneIsEmpty {
		defaults = value.NewMap()
	}
	nodes, ok := dest.(*value.Map)
	if !ok {
		return nil, function.TypeError("argument dest: %v", function.Expected("a mapping", dest))
	}
	for _, name := range nodes.Keys() {
		own, _, _ := nodes.GetKey(name) // the key exists, since it comes from the mapping
		merged, err := mergeDefaults(value.Copy(defaults), own, mergeLists, true, noneIsEmpty)
		if err != nil {
			return nil, err
		}
		if err := nodes.SetKey(name, merged); err != nil {
			return nil, err
		}
	}
	return nodes, nil
}
