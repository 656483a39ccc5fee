// Package slsutil implements slsutil.*: merging, serializers and renderers for templates.
package slsutil

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/render"
	"github.com/corpus-agent/corpus-agent/state/value"
)

type slsutil struct{ *function.Facts }

// Functions returns the functions of slsutil that templates may call.
func Functions(f *function.Facts) function.Table {
	s := slsutil{f}
	return function.Table{
		"slsutil.update":      function.Of("dest, upd, recursive_update=True, merge_lists=False", function.Update),
		"slsutil.merge":       function.Of("obj_a, obj_b, strategy='smart', renderer='yaml', merge_lists=False", s.merge),
		"slsutil.merge_all":   function.Of("lst, strategy='smart', renderer='yaml', merge_lists=False", s.mergeAll),
		"slsutil.renderer":    function.Of("path=None, string=None, default_renderer='jinja|yaml', **kwargs", s.renderer),
		"slsutil.serialize":   function.Of("serializer, obj, **mod_kwargs", s.serialize),
		"slsutil.deserialize": function.Of("serializer, stream_or_string, **mod_kwargs", s.deserialize),
		"slsutil.banner": function.Of(
			"width=72, commentchar='#', borderchar='#', blockstart=None, blockend=None, title=None, text=None, newline=False",
			bannerText),
		"slsutil.boolstr":     function.Of("value, true='true', false='false'", boolstr),
		"slsutil.file_exists": function.Of("path, saltenv='base'", s.fileExists),
		"slsutil.dir_exists":  function.Of("path, saltenv='base'", s.dirExists),
		"slsutil.path_exists": function.Of("path, saltenv='base'", s.pathExists),
		"slsutil.findup":      function.Of("startpath, filenames, saltenv='base'", s.findUp),
	}
}

func boolstr(v, yes, no any) any {
	if value.Truth(v) {
		return yes
	}
	return no
}

func (s slsutil) merge(a, b any, strategy, renderer string, mergeLists bool) (any, error) {
	under, ok := a.(*value.Map)
	over, okOver := b.(*value.Map)
	if !ok || !okOver {
		return nil, function.TypeError("a %s cannot be merged into a %s: both have to be mappings", value.TypeName(b),
			value.TypeName(a))
	}
	how := value.Strategy(strategy)
	switch {
	case how == value.Smart && strings.HasPrefix(renderer[strings.LastIndexByte(renderer, '|')+1:], "yamlex"):
		how = value.Aggregate
	case how == value.Overwrite:
		overwriteShared(under, over)
	case how == value.ListMerge:
		return pairs(under, over), nil
	case !slices.Contains(value.Strategies(), how):
		s.WriteLog("warning", fmt.Sprintf("slsutil.merge: there is no strategy %q, so it is recurse", strategy))
		how, mergeLists = value.Recurse, false
	}
	return value.Merge(under, over, how, mergeLists && how != value.None)
}

// overwriteShared also sets the keys that both mappings have in the first one, as Salt does: templates may depend
// on it.
func overwriteShared(under, over *value.Map) {
	for key, v := range over.All() {
		if _, ok, _ := under.GetKey(key); ok {
			_ = under.SetKey(key, v) // it is a key of this mapping already
		}
	}
}

// pairs returns the keys of a and their values. If both mappings have a key, its value is a list of both values.
func pairs(a, b *value.Map) *value.Map {
	merged := a.Clone()
	for key, v := range a.All() {
		if w, ok, _ := b.GetKey(key); ok {
			_ = merged.SetKey(key, value.NewList(v, w)) // it is a key of this mapping already
		}
	}
	return merged
}

func (s slsutil) mergeAll(mappings *value.List, strategy, renderer string, mergeLists bool) (any, error) {
	var merged any = value.NewMap()
	for _, m := range mappings.Items {
		var err error
		if merged, err = s.merge(merged, m, strategy, renderer, mergeLists); err != nil {
			return nil, err
		}
	}
	return merged, nil
}

// renderer renders a file or a text with a pipe of renderers. The argument context, and every other argument, are
// variables of the template.
func (s slsutil) renderer(ctx context.Context, file, text, pipe string, options *value.Map) (any, error) {
	if s.Render == nil {
		return nil, errors.New("no renderer is available")
	}
	env, ok := options.Value("saltenv").(string)
	if !ok {
		env = "base"
	}
	vars := value.NewMap()
	if m, ok := options.Value("context").(*value.Map); ok {
		vars.Update(m)
	}
	for name, v := range options.All() {
		if name != "context" && name != "saltenv" {
			vars.Set(value.Str(name), v)
		}
	}
	src := render.Source{Name: ":string:", File: ":string:", Env: env, Text: text}
	if file != "" {
		var found bool
		var err error
		if src, found, err = s.source(file, env); err != nil || !found {
			return value.NewMap(), err
		}
	}
	if strings.TrimSpace(src.Text) == "" {
		if file != "" {
			return value.NewMap(), nil
		}
		return nil, function.TypeError("give a path, or a string that is not empty")
	}
	return s.Render(ctx, src, pipe, vars)
}

// source returns the text to render.
func (s slsutil) source(url, env string) (src render.Source, found bool, err error) {
	file, ok, err := s.Locate(url, env)
	if err != nil || !ok {
		return src, false, err
	}
	text, err := function.ReadText(s.HostOf(url), file)
	name := strings.TrimPrefix(url, "salt://")
	return render.Source{Name: name, File: file, Env: env, Text: text}, true, err
}

func (s slsutil) fileExists(name, env string) (bool, error) {
	if s.States == nil {
		return false, errors.New("there is no state tree")
	}
	files, err := s.States.Files(env)
	_, found := slices.BinarySearch(files, name)
	return found, err
}

func (s slsutil) dirExists(name, env string) (bool, error) {
	if s.States == nil {
		return false, errors.New("there is no state tree")
	}
	folders, err := s.States.Folders(env)
	_, found := slices.BinarySearch(folders, name)
	return found, err
}

func (s slsutil) pathExists(name, env string) (bool, error) {
	file, err := s.fileExists(name, env)
	if file || err != nil {
		return file, err
	}
	return s.dirExists(name, env)
}

// findUp searches for one of several names in a directory of the state tree, and then in the directories above it.
func (s slsutil) findUp(start *string, names any, env string) (string, error) {
	wanted, err := function.Texts(names)
	switch names.(type) {
	case string, *value.List:
	default:
		err = function.TypeError("argument filenames: %v", function.Expected("a string or a list of them", names))
	}
	if err != nil {
		return "", err
	}
	dir := ""
	if start != nil && *start != "" {
		dir = path.Clean(*start)
		if ok, err := s.pathExists(dir, env); err != nil || !ok {
			return "", errors.Join(err, fmt.Errorf("%s is not in the state tree", dir))
		}
	}
	for {
		for _, name := range wanted {
			full := path.Join(dir, name)
			if ok, err := s.pathExists(full, env); err != nil || ok {
				return full, err
			}
		}
		if dir == "" {
			return "", fmt.Errorf("there is no %s in or above %s", strings.Join(wanted, " or "), orRoot(start))
		}
		if dir = path.Dir(dir); dir == "." {
			dir = ""
		}
	}
}

func orRoot(dir *string) string {
	if dir == nil || *dir == "" {
		return "the state tree's root"
	}
	return *dir
}
