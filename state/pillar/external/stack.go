package external

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/jinja"
	"github.com/corpus-agent/corpus-agent/state/value"
	"github.com/corpus-agent/corpus-agent/state/yaml"
)

// stack implements PillarStack: files list YAML files, which are templates and see the data of the files before them.
func (w World) stack(ctx context.Context, argument any) (any, error) {
	lists, err := w.stackLists(argument)
	if err != nil {
		return nil, err
	}
	all := value.NewMap()
	for _, file := range lists {
		text, found, err := w.text(file)
		if err != nil {
			return nil, err
		}
		if !found {
			return nil, diag.External.Hint(fmt.Errorf("there is no file %s", file),
				"create it, or take it out of the argument of the source `stack`")
		}
		if all, err = w.stackFile(ctx, file, text, all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (w World) text(file string) (text string, found bool, err error) {
	data, err := w.Files.ReadFile(file)
	found, err = walk.Found(err)
	return string(data), found, err
}

// env returns the environment of the pillar, or of the states.
func (w World) env() string {
	for _, name := range []string{"pillarenv", "saltenv"} {
		if env, ok := w.Options.Value(name).(string); ok && env != "" {
			return env
		}
	}
	return "base"
}

// stackLists returns the files that list others: all of the argument, or those for a value of the pillar, a grain or an
// option.
func (w World) stackLists(argument any) ([]string, error) {
	switch a := argument.(type) {
	case *value.List:
		return texts(a), nil
	case *value.Map:
		var all []string
		for key, choices := range a.All() {
			more, err := w.chosen(value.Str(key), choices)
			if err != nil {
				return nil, err
			}
			all = append(all, more...)
		}
		return all, nil
	case string:
		return []string{a}, nil
	}
	return nil, diag.External.Hint(fmt.Errorf("its argument is a %s", value.TypeName(argument)),
		"write the path of a file, or a list of them")
}

func texts(l *value.List) (all []string) {
	for _, item := range l.Items {
		all = append(all, value.Str(item))
	}
	return all
}

func (w World) chosen(key string, choices any) ([]string, error) {
	kind, name, _ := strings.Cut(key, ":")
	in := map[string]any{"pillar": w.Pillar, "grains": w.Grains, "opts": w.Options}[kind]
	if in == nil {
		return nil, diag.External.Hint(fmt.Errorf("its key %s names neither pillar, grains nor opts", key),
			"write `grains:NAME:`, `pillar:NAME:` or `opts:NAME:`")
	}
	m, _ := choices.(*value.Map)
	v, _ := value.Lookup(in, name, ":")
	found, has, err := m.GetKey(v)
	if own := m.Value("__env__"); own != nil && v == w.env() {
		found, has, err = own, true, nil
	}
	if err != nil || !has {
		return nil, err
	}
	list, ok := found.(*value.List)
	if !ok {
		list = value.NewList(found)
	}
	files := texts(list)
	for i := range files {
		files[i] = strings.ReplaceAll(files[i], "__env__", w.env())
	}
	return files, nil
}

// stackFile merges the YAML files that a file lists over the data so far.
func (w World) stackFile(ctx context.Context, file, text string, all *value.Map) (*value.Map, error) {
	dir := path.Dir(file)
	vars := value.NewMap("__opts__", w.Options, "__grains__", w.Grains, "__stack__",
		value.NewMap("traverse", traverse{}, "cfg_path",
			file), "minion_id", w.ID, "pillar", w.Pillar, "pillarenv", w.Options.Value("pillarenv"), "stack", all)
	made, err := w.Render(ctx, dir, file, text, vars)
	if err != nil {
		return nil, err
	}
	for _, pattern := range listed(made) {
		files, err := w.matching(dir, pattern)
		if err != nil {
			return nil, err
		}
		for _, one := range files {
			if all, err = w.stackOne(ctx, dir, one, vars, all); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// listed returns the patterns of a file that lists others: a list in YAML, or one on each line.
func listed(text string) (all []string) {
	lines := strings.Split(text, "\n")
	if doc, err := yaml.LoadString(text, "the list"); err == nil {
		if list, ok := doc.Value.(*value.List); ok {
			lines = texts(list)
		}
	}
	for _, line := range lines {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}

func (w World) stackOne(ctx context.Context, dir, file string, vars, all *value.Map) (*value.Map, error) {
	text, found, err := w.text(file)
	if err != nil || !found {
		return all, err
	}
	vars = vars.Clone()
	vars.Set("stack", all)
	vars.Set("ymlpath", file)
	made, err := w.Render(ctx, dir, file, text, vars)
	if err != nil {
		return nil, err
	}
	doc, err := yaml.LoadString(made, file)
	if err != nil {
		return nil, err
	}
	if m, ok := doc.Value.(*value.Map); ok {
		return stacked(all, m)
	}
	return all, nil
}

// matching returns the files of a directory that a pattern matches, in order.
func (w World) matching(dir, pattern string) ([]string, error) {
	dirs := []string{dir}
	if path.IsAbs(pattern) {
		dirs = []string{"/"}
	}
	for part := range strings.SplitSeq(path.Clean(pattern), "/") {
		if part == "" {
			continue
		}
		var next []string
		for _, d := range dirs {
			names := []string{part}
			if strings.ContainsAny(part, "*?[") {
				all, err := w.Files.ReadDir(d)
				if found, err := walk.Found(err); err != nil && !errors.Is(err, host.ErrNotDir) || !found {
					return nil, err
				}
				names = slices.DeleteFunc(all, func(name string) bool {
					return strings.HasPrefix(name, ".") && part[0] != '.' || !value.Glob(part, name)
				})
			}
			for _, name := range names {
				next = append(next, path.Join(d, name))
			}
		}
		dirs = next
	}
	slices.Sort(dirs)
	return dirs, nil
}

// traverse is the function __stack__['traverse'], which looks up a path such as a:b, or returns a default.
type traverse struct{}

// PyType, PyRepr and PyTruth are part of value.Object.
func (traverse) PyType() string { return "function" }
func (traverse) PyRepr() string { return "<function traverse>" }
func (traverse) PyTruth() bool  { return true }

// Call is part of jinja.Callable.
func (traverse) Call(c *jinja.Call) (any, error) {
	if len(c.Args) < 2 {
		return nil, value.Raise("TypeError", "traverse takes data and a key")
	}
	v, found := value.Lookup(c.Args[0], value.Str(c.Args[1]), ":")
	if !found && len(c.Args) > 2 {
		v = c.Args[2]
	}
	return v, nil
}
