// Package mine implements mine.*: the data that hosts publish for each other in Salt. Without a master a host sees
// only its own mine_functions.
package mine

import (
	"context"
	"fmt"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// mine returns the results of the host's own mine_functions if the target matches the host. Without a master, there is
// no data of other hosts, and sending has no effect.
type mine struct {
	*function.Facts
	all function.Table
}

// Functions returns the functions of mine that templates may call.
func Functions(f *function.Facts, all function.Table) function.Table {
	m := mine{f, all}
	return function.Table{
		"mine.get":    function.Of("tgt, fun, tgt_type='glob', exclude_minion=False", m.get),
		"mine.valid":  function.Of("", m.valid),
		"mine.update": function.Of("clear=False, mine_functions=None", func(_, _ any) bool { return true }),
		"mine.send":   function.Of("name, *args, **kwargs", func(any, []any, *value.Map) bool { return true }),
		"mine.delete": function.Of("fun", func(any) bool { return true }),
		"mine.flush":  function.Of("", func() bool { return true }),
	}
}

// get returns the results of functions for the hosts that match, by host; of several functions, by function first.
func (m mine) get(ctx context.Context, target, functions any, kind string, exclude bool) (*value.Map, error) {
	is, err := m.Matcher(kind, "")
	found := value.NewMap()
	if err != nil || exclude || !is(target) {
		return found, err
	}
	names := function.CommaList(functions)
	_, isList := functions.(*value.List)
	for _, name := range names {
		definition, ok := m.functions().Get(name)
		if !ok {
			continue
		}
		v, err := m.call(ctx, name, definition)
		if err != nil {
			m.WriteLog("error", fmt.Sprintf("mine.get: %v", err))
			continue
		}
		if len(names) > 1 || isList {
			found.Set(name, value.NewMap(m.ID, v))
		} else {
			found.Set(m.ID, v)
		}
	}
	return found, nil
}

// functions returns the mine_functions of the configuration and the pillar.
func (m mine) functions() *value.Map {
	all := value.NewMap()
	for _, data := range []*value.Map{m.CurrentPillar(), m.Options} {
		named, _ := data.Value("mine_functions").(*value.Map)
		all.Update(named)
	}
	return all
}

func (m mine) call(ctx context.Context, name string, definition any) (any, error) {
	function, args, kwargs := parseMine(definition)
	if function == "" {
		function = name
	}
	return m.all.Call(ctx, function, args, kwargs)
}

// parseMine parses a definition: arguments as a list, with mappings for named ones, or as one mapping.
// mine_function names the function if the entry has another name.
func parseMine(definition any) (function string, args []any, kwargs *value.Map) {
	kwargs = value.NewMap()
	switch d := definition.(type) {
	case *value.Map:
		kwargs.Update(d)
	case *value.List:
		for _, item := range d.Items {
			if named, ok := item.(*value.Map); ok {
				kwargs.Update(named)
			} else {
				args = append(args, item)
			}
		}
	}
	function, _ = kwargs.Value("mine_function").(string)
	for _, own := range []string{"mine_function", "allow_tgt", "allow_tgt_type"} {
		kwargs.Delete(own)
	}
	return function, args, kwargs
}

// valid returns the definitions whose functions exist.
func (m mine) valid() *value.Map {
	all := value.NewMap()
	for _, name := range m.functions().Names() {
		definition := m.functions().Value(name)
		function, args, kwargs := parseMine(definition)
		if function == "" {
			if m.all.Has(name) {
				all.Set(name, definition)
			}
			continue
		}
		if !m.all.Has(function) {
			continue
		}
		list := value.NewList(args...)
		for key, v := range kwargs.All() {
			list.Append(value.NewMap(value.Str(key), v))
		}
		all.Set(name, value.NewMap(function, list))
	}
	if all.Len() == 0 {
		return nil
	}
	return all
}
