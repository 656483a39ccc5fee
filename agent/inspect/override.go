package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/corpus-agent/corpus-agent/agent/failure"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/grains/custom"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// onMachine rewrites the paths of the deployed trees below --root to paths of this machine, so that directories of the
// machine can be used beside them.
func (h *Host) onMachine(s *session.Settings) (err error) {
	if s.Trees != nil || !h.Layout.Relocated() {
		return nil
	}
	if s.Trees, err = s.Host.Machine(); err != nil {
		return err
	}
	for _, envs := range [][]roots.Env{s.States, s.Pillar} {
		for _, env := range envs {
			for i, dir := range env.Dirs {
				env.Dirs[i] = h.Layout.Path(dir)
			}
		}
	}
	return nil
}

// addGrainModules adds the grains of the modules below _grains of the given trees. It does nothing if the session has
// no grains.
func (h *Host) addGrainModules(ctx context.Context, dirs []string, s *session.Settings, opened *Opened) error {
	has := false
	for _, dir := range dirs {
		is, err := walk.Directory(filepath.Join(dir, "_grains"))
		if err != nil {
			return err
		}
		has = has || is
	}
	if s.Grains.Len() == 0 || !has {
		return nil
	}
	id, err := h.identity(ctx)
	if err != nil {
		return err
	}
	all, warnings, err := h.Grains(ctx, id, site.GrainDirs{States: dirs})
	if err != nil {
		return err
	}
	for _, w := range warnings {
		s.Log("warning", w.Error())
	}
	opened.unknown = cmp.Or(opened.unknown, failure.OfGrains(failure.ExceptAbsentPython(warnings)))
	for name, v := range all.All() {
		if key, is := name.(string); is && !s.Grains.Has(key) {
			s.Grains.Set(key, v)
		}
	}
	return nil
}

// override applies the settings of the command line.
func (h *Host) override(ctx context.Context, t Trees, s *session.Settings, opened *Opened) error {
	if len(t.States)+len(t.Pillar) > 0 {
		if err := h.onMachine(s); err != nil {
			return err
		}
	}
	if len(t.States) > 0 {
		dirs, err := directories("--states", t.States)
		if err != nil {
			return err
		}
		s.States, s.Declare = []roots.Env{{Name: "base", Dirs: dirs}}, nil
		if err := h.addGrainModules(ctx, dirs, s, opened); err != nil {
			return err
		}
	}
	if len(t.Pillar) > 0 {
		if err := overridePillar(t.Pillar, s); err != nil {
			return err
		}
	}
	if t.Grains == "" {
		return nil
	}
	more, err := custom.ReadFile(t.Grains)
	if errors.Is(err, os.ErrNotExist) {
		return diag.Usage.Hint(fmt.Errorf("--grains: there is no file %s", t.Grains), "give a YAML or JSON file of grains")
	}
	if err != nil {
		return err
	}
	s.Grains = s.Grains.Clone()
	if describesSystem(more) {
		s.Grains.Delete("systemd")
	}
	s.Grains.Update(more)
	if id, ok := more.Value("id").(string); ok {
		s.ID = id
	}
	return nil
}

// describesSystem reports whether grains are those of a system of its own. Formulas ask for the grain systemd by its
// presence, so the host's must not stand for a system that has none.
func describesSystem(given *value.Map) bool {
	return given.Has("os") || given.Has("os_family") || given.Has("kernel") || given.Has("init")
}

func overridePillar(paths []string, s *session.Settings) error {
	var dirs []string
	for _, path := range paths {
		info, err := os.Stat(path)
		found, err := walk.Found(err)
		if err != nil {
			return err
		}
		if found && !info.IsDir() {
			if err := overrideFile(path, s); err != nil {
				return err
			}
			continue
		}
		dirs = append(dirs, path)
	}
	if len(dirs) == 0 {
		return nil
	}
	dirs, err := directories("--pillar", dirs)
	s.Pillar = []roots.Env{{Name: "base", Dirs: dirs}}
	return err
}

// overrideFile merges the content of a file over the pillar.
func overrideFile(path string, s *session.Settings) error {
	data, err := custom.ReadFile(path)
	if err != nil {
		return err
	}
	s.Override = s.Override.Clone()
	s.Override.Update(data)
	return nil
}

func directories(flag string, names []string) ([]string, error) {
	var all []string
	for _, name := range names {
		dir, err := filepath.Abs(name)
		if err != nil {
			return nil, err
		}
		is, err := walk.Directory(dir)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
		if !is {
			hint := "give the directory that the top file is in"
			if flag == "--pillar" {
				hint += ", or a YAML or JSON file of values"
			}
			return nil, diag.Usage.Hint(fmt.Errorf("%s: there is no directory %s", flag, name), "%s", hint)
		}
		all = append(all, dir)
	}
	return all, nil
}
