package site

import (
	"context"
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
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/python"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// grainModules answers the requests of grain modules while they run: for their source and that of the modules in the
// tree's _utils. As under Salt, they cannot call functions of the agent.
type grainModules struct{ files map[string]map[string]string }

// World implements python.Asker.
func (grainModules) World() *value.Map { return value.NewMap() }

// Ask implements python.Asker.
func (g grainModules) Ask(_ context.Context, q *value.Map) (any, error) {
	kind, name := value.Str(q.Value("kind")), value.Str(q.Value("name"))
	switch q.Value("ask") {
	case "source":
		file, ok := g.files[kind][name]
		if !ok {
			return nil, fmt.Errorf("there is no module %s", name)
		}
		data, found, err := walk.Read(file)
		if err != nil {
			return nil, err
		}
		if !found {
			return nil, fmt.Errorf("%s: %w", file, os.ErrNotExist)
		}
		return value.NewMap("path", file, "text", data), nil
	case "has":
		return false, nil
	case "names":
		return value.NewList(), nil
	case "log":
		return nil, nil
	}
	return nil, fmt.Errorf("grain modules cannot ask for %s", value.Repr(q.Value("ask")))
}

// runGrainModules runs grain modules in a worker of their own, since the grains are needed before there is a session.
// check is that of grainCheck.
func (s *Site) runGrainModules(ctx context.Context, hostname string, facts *grains.Facts, dirs GrainDirs,
	check func(path string) error, files []string) (map[string]custom.ModuleAnswer, error) {
	h, err := s.StateHost()
	if err != nil {
		return nil, err
	}
	utils, err := utilsOf(dirs, check)
	if err != nil {
		return nil, err
	}
	g := grainModules{map[string]map[string]string{"grains": {}, "utils": utils}}
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
	w := python.New(python.Options{Host: h, Asks: g, Modules: known.Plain(),
		Opts: opts})
	defer w.Close()
	core := facts.All(ctx).Clone()
	core.Set("id", opts.Value("id"))
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
				one.Problems = append(one.Problems, fmt.Errorf("%s: %s", s.Layout.Inside(file), value.Str(p)))
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

// utilsOf returns the modules below _utils of the state tree that no other user can change.
func utilsOf(dirs GrainDirs, check func(path string) error) (map[string]string, error) {
	found := map[string]string{}
	for _, root := range slices.Backward(dirs.States) {
		files, err := walk.Glob(filepath.Join(root, "_utils", "*.py"))
		if err != nil {
			return nil, fmt.Errorf("looking for Python modules: %w", err)
		}
		for _, file := range files {
			if check(file) == nil {
				found[strings.TrimSuffix(filepath.Base(file), ".py")] = file
			}
		}
	}
	return found, nil
}
