package grains

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
	"github.com/corpus-agent/corpus-agent/state/yaml"
)

// Acting returns the functions that change the file of grains. A changed grain has its new value for the rest of
// the run.
func Acting(f *function.Facts) function.Table {
	g := grains{f}
	return function.Table{
		"grains.setval":  function.Of("key, val, destructive=False, refresh_pillar=True", g.setOne),
		"grains.setvals": function.Of("grains, destructive=False, refresh_pillar=True", g.setAll),
		"grains.set":     function.Of("key, val='', force=False, destructive=False, delimiter=':'", g.set),
		"grains.append":  function.Of("key, val, convert=False, delimiter=':'", g.append),
		"grains.remove":  function.Of("key, val, delimiter=':'", g.remove),
		"grains.delval":  function.Of("key, destructive=False, force=False", g.clear),
		"grains.delkey": function.Of("key, force=False", func(key string, force bool) (any, error) {
			return g.set(key, nil, force, true, ":")
		}),
	}
}

func (g grains) clear(key string, destructive, force bool) (any, error) {
	return g.set(key, nil, force, destructive, ":")
}

func (g grains) setOne(key string, v any, destructive bool, _ any) (*value.Map, error) {
	return g.setAll(value.NewMap(key, v), destructive, nil)
}

// setAll writes grains to the file, or removes those that are None if destructive is true, and returns its
// argument.
func (g grains) setAll(wanted *value.Map, destructive bool, _ any) (*value.Map, error) {
	file, on, err := g.file()
	if err != nil {
		return nil, err
	}
	kept, err := readGrains(on, file)
	if err != nil {
		return nil, err
	}
	for key, v := range wanted.All() {
		name := value.Str(key)
		if v == nil && destructive {
			kept.Delete(name)
			g.Grains.Delete(name)
			continue
		}
		kept.Set(name, v)
		g.Grains.Set(name, v)
	}
	text := yaml.Dump(kept, yaml.DumpOptions{Collections: yaml.Block, Sort: yaml.SortAll})
	return wanted, on.WriteText(file, text)
}

func (g grains) file() (string, *host.Host, error) {
	file, on := g.GrainsFile.Path, g.GrainsFile.Host
	if file == "" {
		file = "/etc/corpus/grains.yaml"
	}
	if on == nil {
		on = g.Host
	}
	if g.Grains == nil {
		return "", nil, errors.New("the grains of this host are not known")
	}
	return file, on, nil
}

func readGrains(h *host.Host, file string) (*value.Map, error) {
	text, err := function.ReadText(h, file)
	if errors.Is(err, fs.ErrNotExist) {
		return value.NewMap(), nil
	}
	if err != nil {
		return nil, err
	}
	doc, err := yaml.LoadPlain(text, file)
	if err != nil {
		return nil, err
	}
	if doc.Value == nil {
		return value.NewMap(), nil
	}
	m, ok := doc.Value.(*value.Map)
	if !ok {
		return nil, diag.Grains.Hint(fmt.Errorf("%s holds a %s, and a mapping was expected", file,
			value.TypeName(doc.Value)), "correct the file; nothing was changed")
	}
	return m, nil
}

// current returns a copy of a grain that may be changed.
func (g grains) current(key string, otherwise any, delimiter string) any {
	return value.Copy(function.Traverse(g.Grains, key, otherwise, delimiter))
}

// append appends a value, or all items of a list, to a list. If that is impossible, it returns a sentence, as Salt
// does.
func (g grains) append(key string, v any, convert bool, delimiter string) (any, error) {
	list, ok := g.listOf(key, convert, delimiter)
	switch {
	case !ok:
		return "The key " + key + " is not a valid list", nil
	case value.Contains(list.Items, v):
		return fmt.Sprintf("The val %s was already in the list %s", value.Str(v), key), nil
	}
	if more, ok := v.(*value.List); ok {
		list.Items = append(list.Items, more.Items...)
	} else {
		list.Append(v)
	}
	return g.store(key, list, delimiter)
}

func (g grains) remove(key string, v any, delimiter string) (any, error) {
	list, ok := g.listOf(key, false, delimiter)
	if !ok {
		return "The key " + key + " is not a valid list", nil
	}
	for i, item := range list.Items {
		if value.Equal(item, v) {
			list.Items = append(list.Items[:i:i], list.Items[i+1:]...)
			return g.store(key, list, delimiter)
		}
	}
	return fmt.Sprintf("The val %s was not in the list %s", value.Str(v), key), nil
}

// listOf returns the list under a key, or an empty list if the grain does not exist.
func (g grains) listOf(key string, convert bool, delimiter string) (*value.List, bool) {
	v := g.current(key, value.NewList(), delimiter)
	list, ok := v.(*value.List)
	switch {
	case ok || !convert:
		return list, ok
	case v == nil:
		return value.NewList(), true
	}
	return value.NewList(v), true
}

// store sets a grain that may be nested in others.
func (g grains) store(key string, v any, delimiter string) (any, error) {
	for {
		above, below, nested := cutLast(key, delimiter)
		if !nested {
			return g.setOne(key, v, false, nil)
		}
		key = above
		switch around := g.current(key, value.NewMap(), delimiter).(type) {
		case *value.Map:
			around.Set(below, v)
			v = around
		case *value.List:
			around.Append(value.NewMap(below, v))
			v = around
		default:
			v = value.NewMap(below, v)
		}
	}
}

func cutLast(key, delimiter string) (above, below string, found bool) {
	i := -1
	if delimiter != "" {
		i = strings.LastIndex(key, delimiter)
	}
	if i < 0 {
		return key, "", false
	}
	return key[:i], key[i+len(delimiter):], true
}

// set sets a grain. Unless force is true, it does not replace a mapping or a list. With destructive, None removes
// the grain.
func (g grains) set(key string, v any, force, destructive bool, delimiter string) (any, error) {
	old, there := function.Find(g.Grains, key, delimiter)
	if there && value.Equal(old, v) && (v != nil || !destructive) {
		return reportOf("Grain is already set", true, nil), nil
	}
	if there && old != nil && !force {
		switch {
		case complexValue(old):
			return reportOf(fmt.Sprintf("The key '%s' exists but is a dict or a list. Use 'force=True' to overwrite.", key),
				false, nil), nil
		case complexValue(v):
			return reportOf(
				fmt.Sprintf("The key '%s' exists and the given value is a dict or a list. Use 'force=True' to overwrite.", key),
				false, nil), nil
		}
	}
	remove := v == nil && destructive
	for {
		above, below, nested := cutLast(key, delimiter)
		if !nested {
			break
		}
		around, ok := nest(g.current(above, value.NewMap(), delimiter), below, v, remove, force)
		if !ok {
			return reportOf(fmt.Sprintf("The key '%s' holds another value than '%s'. Use 'force=True' to overwrite.", above,
				below), false, nil), nil
		}
		key, v, remove = above, around, false
	}
	changes, err := g.setAll(value.NewMap(key, v), destructive, nil)
	return reportOf("", err == nil, changes), err
}

// nest sets a value below an existing one; ok is false if that would replace data.
func nest(around any, below string, v any, remove, force bool) (any, bool) {
	switch around := around.(type) {
	case *value.Map:
		if remove {
			around.Delete(below)
		} else {
			around.Set(below, v)
		}
		return around, true
	case *value.List:
		nestInList(around, below, v)
		return around, true
	}
	if value.Str(around) == below || force {
		return value.NewMap(below, v), true
	}
	return nil, false
}

func nestInList(list *value.List, below string, v any) {
	found := false
	for i, item := range list.Items {
		if m, ok := item.(*value.Map); ok && m.Has(below) {
			m.Set(below, v)
			found = true
		} else if value.Equal(item, below) {
			list.Items[i] = value.NewMap(below, v)
			found = true
		}
	}
	if !found {
		list.Append(value.NewMap(below, v))
	}
}

func complexValue(v any) bool {
	switch v.(type) {
	case *value.Map, *value.List:
		return true
	}
	return false
}

// reportOf returns a report in the form of a state's result.
func reportOf(comment string, result bool, changes *value.Map) *value.Map {
	if changes == nil {
		changes = value.NewMap()
	}
	return value.NewMap("comment", comment, "changes", changes, "result", result)
}
