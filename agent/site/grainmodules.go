package site

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/grains/custom"
	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/function/cmd"
	"github.com/corpus-agent/corpus-agent/state/function/environ"
	"github.com/corpus-agent/corpus-agent/state/function/file"
	"github.com/corpus-agent/corpus-agent/state/function/kmod"
	"github.com/corpus-agent/corpus-agent/state/function/sysctl"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/python"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// grainModules answers the requests of grain modules while they run: for their source and that of the files in the
// tree's _utils and _python, and for functions of the agent. As under Salt, they have no __salt__, but they can
// import salt.modules.cmdmod.
type grainModules struct {
	files map[string]map[string]string // by kind and name
	check func(path string) error      // that of grainCheck

	functions function.Table
}

// grainFunctions returns the functions of the agent that need neither a tree nor a pillar.
func grainFunctions(f *function.Facts) function.Table {
	return function.Table{}.Add(cmd.Functions(f), environ.Functions(f), file.Functions(f), kmod.Functions(f),
		sysctl.Functions(f))
}

// World implements python.Asker.
func (grainModules) World() *value.Map { return value.NewMap() }

// Ask implements python.Asker.
func (g grainModules) Ask(ctx context.Context, q *value.Map) (any, error) {
	switch q.Value("ask") {
	case "source":
		return g.source(value.Str(q.Value("kind")), value.Str(q.Value("name")))
	case "has":
		return q.Value("kind") == "modules" && g.functions.Has(value.Str(q.Value("name"))), nil
	case "salt":
		args, _ := q.Value("args").(*value.List)
		kwargs, _ := q.Value("kwargs").(*value.Map)
		return g.functions.Call(ctx, value.Str(q.Value("name")), args.Items, kwargs)
	case "names":
		return value.NewList(), nil
	case "log":
		return nil, nil
	}
	return nil, fmt.Errorf("grain modules cannot ask for %s", value.Repr(q.Value("ask")))
}

// source returns the text of a module, or of a part of a package. It returns nil if the package has no such part.
func (g grainModules) source(kind, name string) (any, error) {
	name, part, isPart := strings.Cut(name, "/")
	file, ok := g.files[kind][name]
	if !ok {
		return nil, fmt.Errorf("there is no module %s", name)
	}
	candidates := []string{file}
	if dir, base := filepath.Split(file); isPart {
		candidates = []string{filepath.Join(dir, part, initFile), filepath.Join(dir, part+".py")}
		if base != initFile {
			return nil, nil
		}
	}
	for _, candidate := range candidates {
		data, found, err := walk.Read(candidate)
		if err != nil {
			return nil, err
		}
		if !found {
			continue
		}
		if isPart {
			err = g.check(candidate)
		}
		return value.NewMap("path", candidate, "text", data), err
	}
	if isPart {
		return nil, nil
	}
	return nil, fmt.Errorf("%s: %w", file, os.ErrNotExist)
}

// initFile is the file that makes a directory a package of Python.
const initFile = "__init__.py"

// runGrainModules runs grain modules in a worker of their own, since the grains are needed before there is a session.
// check is that of grainCheck.
func (s *Site) runGrainModules(ctx context.Context, hostname string, facts *grains.Facts, dirs GrainDirs,
	check func(path string) error, files []string) (map[string]custom.ModuleAnswer, error) {
	h, err := s.StateHost()
	if err != nil {
		return nil, err
	}
	utils, errUtils := treeModules(dirs, "_utils", check)
	packages, errPackages := treeModules(dirs, "_python", check)
	if err := errors.Join(errUtils, errPackages); err != nil {
		return nil, err
	}
	g := grainModules{check: check,
		files: map[string]map[string]string{"grains": {}, "utils": utils, "python": packages}}
	for _, file := range files {
		g.files["grains"][strings.TrimSuffix(filepath.Base(file), ".py")] = file
	}
	known := value.NewMap()
	for kind, all := range g.files {
		names := value.NewMap()
		for _, name := range slices.Sorted(maps.Keys(all)) {
			names.Set(name, all[name])
		}
		known.Set(kind, names.Plain())
	}
	opts := dirs.Options
	if opts == nil {
		opts = value.NewMap("id", hostname, "file_client", "local", "cachedir", "/var/cache/corpus", "test", false)
	}
	var places []string
	for _, root := range dirs.States {
		if len(packages) > 0 {
			places = append(places, filepath.Join(s.Layout.Inside(root), "_python"))
		}
	}
	core := facts.All(ctx).Clone()
	core.Set("id", opts.Value("id"))
	g.functions = grainFunctions(&function.Facts{ID: hostname, Grains: core, Options: opts, Host: h})
	w := python.New(python.Options{Host: h, Asks: g, Modules: known.Plain(), Packages: places, Opts: opts})
	defer w.Close()
	v, err := w.Do(ctx, "grains", value.NewMap("grains", core))
	if err != nil {
		return nil, fmt.Errorf("grain modules: %w", err)
	}
	answers := map[string]custom.ModuleAnswer{}
	all, _ := v.(*value.Map)
	for name, answer := range all.All() {
		m, _ := answer.(*value.Map)
		file := g.files["grains"][value.Str(name)]
		one := custom.ModuleAnswer{Grains: value.NewMap()}
		if found, ok := m.Value("grains").(*value.Map); ok {
			one.Grains = found
		}
		if problems, ok := m.Value("problems").(*value.List); ok {
			for _, p := range problems.Items {
				one.Problems = append(one.Problems, fmt.Errorf("%s: %w", s.Layout.Inside(file), python.Failure(value.Str(p))))
			}
		}
		answers[file] = one
	}
	return answers, nil
}

// grainCheck returns the check of programs and modules that give grains. Root must not run a program that another user
// can change, nor one whose interpreter another user can change. Users who control base's release or a whole root of
// the state tree are trusted, as they are with its SLS files.
func (s *Site) grainCheck(dirs GrainDirs) func(path string) error {
	open := sync.OnceValues(s.StateHost)
	tops := make([]string, 0, len(dirs.States)+1)
	for _, dir := range append(slices.Clone(dirs.States), dirs.Base) {
		if dir != "" {
			tops = append(tops, s.Layout.Inside(dir))
		}
	}
	return func(path string) error {
		h, err := open()
		if err != nil {
			return err
		}
		if err := host.CheckTrusted(h.Files, s.Layout.Inside(path), tops...); err != nil {
			return err
		}
		return s.CheckScript(s.Layout.Inside(path))
	}
}

// treeModules returns the modules and packages in a directory of the state tree, such as _utils, that no other user can
// change.
func treeModules(dirs GrainDirs, name string, check func(path string) error) (map[string]string, error) {
	found := map[string]string{}
	for _, root := range slices.Backward(dirs.States) {
		for _, pattern := range []string{"*/" + initFile, "*.py"} {
			files, err := walk.Glob(filepath.Join(root, name, pattern))
			if err != nil {
				return nil, fmt.Errorf("looking for Python modules: %w", err)
			}
			for _, file := range files {
				if check(file) == nil {
					module := strings.TrimSuffix(file, "/"+initFile)
					found[strings.TrimSuffix(filepath.Base(module), ".py")] = file
				}
			}
		}
	}
	return found, nil
}
