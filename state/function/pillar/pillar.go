// Package pillar implements pillar.*: the values of the pillar.
package pillar

import (
	"context"
	"errors"
	"fmt"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/value"
)

type pillar struct{ *function.Facts }

// Functions returns the functions of pillar that templates may call.
func Functions(f *function.Facts) function.Table {
	p := pillar{f}
	get := function.Of(
		"key, default=..., merge=False, merge_nested_lists=None, delimiter=':', pillarenv=None, saltenv=None", p.get)
	return function.Table{
		"pillar.get":         get,
		"pillar.fetch":       get,
		"pillar.items":       function.Of("*args, **kwargs", p.items),
		"pillar.data":        function.Of("*args, **kwargs", p.items),
		"pillar.item":        function.Of("*args, **kwargs", p.item),
		"pillar.ls":          function.Of("*args", p.ls),
		"pillar.keys":        function.Of("key, delimiter=':'", p.keys),
		"pillar.raw":         function.Of("key=None", p.raw),
		"pillar.obfuscate":   function.Of("*args, **kwargs", p.obfuscate),
		"pillar.file_exists": function.Of("path, saltenv=None", p.fileExists),
		"pillar.filter_by":   function.Of("lookup_dict, pillar, merge=None, default='default', base=None", p.filterBy),
	}
}

// get looks up a value of the pillar. With merge, it is merged into the default if both are mappings or both are
// lists.
func (p pillar) get(ctx context.Context, key, fallback any, merge bool, mergeLists any, delimiter, pillarenv,
	saltenv string) (any, error) {
	data, err := p.of(ctx, pillarenv, saltenv)
	if err != nil {
		return nil, err
	}
	if merge {
		if mergeLists == nil {
			mergeLists = p.Options.Value("pillar_merge_lists")
		}
		if merged := p.merged(data, key, fallback, value.Truth(mergeLists), delimiter); merged != nil {
			return merged, nil
		}
	}
	if found, ok := function.Find(data, key, delimiter); ok {
		return found, nil
	}
	if fallback != (function.Unset{}) {
		return fallback, nil
	}
	if value.Truth(p.Options.Value("pillar_raise_on_missing")) {
		return nil, p.missing(key)
	}
	return "", nil
}

// merged merges the pillar's value into a copy of the default; nil if they have different types.
func (p pillar) merged(data *value.Map, key, fallback any, mergeLists bool, delimiter string) any {
	switch under := fallback.(type) {
	case *value.Map:
		found := function.Traverse(data, key, value.NewMap(), delimiter)
		if over, ok := found.(*value.Map); ok {
			under = value.Copy(under).(*value.Map)
			value.Update(under, over, true, mergeLists)
			return under
		}
	case *value.List:
		found := function.Traverse(data, key, value.NewList(), delimiter)
		if over, ok := found.(*value.List); ok {
			return union(under, over)
		}
	}
	p.WriteLog("error",
		fmt.Sprintf("pillar.get: %s is not merged into its default, since they are not two mappings or two lists",
			value.Str(key)))
	return nil
}

// union returns a copy of list with the items of more that it lacks.
func union(list, more *value.List) *value.List {
	all := value.Copy(list).(*value.List)
	for _, item := range more.Items {
		if !value.Contains(all.Items, item) {
			all.Append(item)
		}
	}
	return all
}

// of returns the pillar of an environment, or the current one if none is named.
func (p pillar) of(ctx context.Context, pillarenv, saltenv string) (*value.Map, error) {
	if pillarenv == "" && saltenv == "" {
		return p.CurrentPillar(), nil
	}
	return p.refreshed(ctx, pillarenv, nil)
}

func (p pillar) refreshed(ctx context.Context, env string, override *value.Map) (*value.Map, error) {
	if p.Refresh == nil {
		fresh := value.Copy(p.CurrentPillar()).(*value.Map)
		value.Update(fresh, override, true, false)
		return fresh, nil
	}
	return p.Refresh(ctx, env, override)
}

func (p pillar) missing(key any) error {
	return diag.Pillar.Hint(fmt.Errorf("there is no key %s in the pillar", value.Str(key)),
		"give a default, or set the key in the pillar")
}

// items returns the pillar, rendered again, or the named keys of the current one.
func (p pillar) items(ctx context.Context, keys []any, options *value.Map) (any, error) {
	if len(keys) > 0 {
		return function.Pick(p.CurrentPillar(), keys, nil)
	}
	if value.Truth(options.Value("pillar_enc")) {
		return nil, errors.New("pillar_enc is not supported: encrypt single values in the pillar's files instead")
	}
	override, _ := options.Value("pillar").(*value.Map)
	env, _ := options.Value("pillarenv").(string)
	return p.refreshed(ctx, env, override)
}

func (p pillar) item(ctx context.Context, keys []any, options *value.Map) (any, error) {
	pillarenv, _ := options.Value("pillarenv").(string)
	saltenv, _ := options.Value("saltenv").(string)
	data, err := p.of(ctx, pillarenv, saltenv)
	if err != nil {
		return nil, err
	}
	return function.Pick(data, keys, options)
}

func (p pillar) ls(ctx context.Context, keys []any) (any, error) {
	all, err := p.items(ctx, keys, nil)
	if err != nil {
		return nil, err
	}
	return keysOf(all.(*value.Map)), nil
}

func (p pillar) keys(key any, delimiter string) (any, error) {
	found, ok := function.Find(p.CurrentPillar(), key, delimiter)
	if !ok {
		return nil, p.missing(key)
	}
	m, ok := found.(*value.Map)
	if !ok {
		return nil, fmt.Errorf("%s is a %s in the pillar, and a mapping was expected", value.Str(key), value.TypeName(found))
	}
	return keysOf(m), nil
}

func keysOf(m *value.Map) *value.List { return value.NewList(m.Keys()...) }

func (p pillar) raw(key string) any {
	if key == "" {
		return p.CurrentPillar().Clone()
	}
	if v, ok := p.CurrentPillar().Get(key); ok {
		return v
	}
	return value.NewMap()
}

// obfuscate returns the structure of the pillar without its values.
func (p pillar) obfuscate(ctx context.Context, keys []any, options *value.Map) (any, error) {
	all, err := p.items(ctx, keys, options)
	if err != nil {
		return nil, err
	}
	return shape(all), nil
}

func shape(v any) any {
	switch v := v.(type) {
	case *value.Map:
		m := v.Clone()
		for key, item := range v.All() {
			_ = m.SetKey(key, shape(item)) // the key is valid, since it comes from a mapping
		}
		return m
	case *value.List:
		return &value.List{Items: shapes(v.Items)}
	case value.Tuple:
		return value.Tuple(shapes(v))
	}
	return "<" + value.TypeName(v) + ">"
}

func shapes(items []any) []any {
	list := make([]any, len(items))
	for i, item := range items {
		list[i] = shape(item)
	}
	return list
}

// fileExists reports whether a file exists in the pillar's directories, or in those of one environment.
func (p pillar) fileExists(path, saltenv string) (bool, error) {
	if p.Pillars == nil {
		return false, errors.New("there are no pillar roots")
	}
	for _, env := range p.Pillars.Envs() {
		if _, ok, err := p.Pillars.Find(env, path); err != nil || ok && (saltenv == "" || saltenv == env) {
			return ok, err
		}
	}
	return false, nil
}

func (p pillar) filterBy(lookup *value.Map, key, merge, fallback, base any) (any, error) {
	return function.FilterBy(p.CurrentPillar(), function.Filter{Lookup: lookup, Key: key, Merge: merge, Fallback: fallback,
		Base: base})
}
