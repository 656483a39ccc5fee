package minion

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// config returns the Config, and removes the options with a field in it from the others.
func (r *reader) config(file string) *Config {
	c := &Config{File: file, StatesPos: r.pos("file_roots", file), Output: Output{Verbose: true, Color: true}}
	c.ID = r.text("id")
	c.States = r.roots("file_roots", defaultStates)
	c.Pillar = r.roots("pillar_roots", defaultPillar)
	c.Grains = r.mapping("grains")
	if c.Grains == nil {
		c.Grains = value.NewMap()
	}
	c.GrainsDirs = texts(r.options.Value("grains_dirs"))
	r.mapping("nodegroups")
	c.Test, c.Failhard = r.flag("test", false), r.flag("failhard", false)
	c.Output.Verbose, c.Output.Color = r.flag("state_verbose", true), r.flag("color", true)
	c.Output.Mode, c.Output.Format = r.mode(), r.text("output")
	r.strategy("pillar_source_merging_strategy", "smart", "recurse", "aggregate", "overwrite", "none")
	r.strategy("top_file_merging_strategy", "merge", "merge_all", "same")
	r.sameEnv()
	c.Ignored = r.ignored()
	c.Options = r.options
	for _, name := range []string{"file_roots", "pillar_roots", "grains", "test", "failhard"} {
		c.Options.Delete(name)
	}
	if at, err := filepath.Abs(file); err == nil { // as under Salt, the file cannot name another
		c.Options.Set("conf_file", at)
		c.Options.Set("config_dir", filepath.Dir(at))
	}
	return c
}

// Modes returns the valid values of state_output.
func Modes() []string { return []string{"full", "terse", "mixed", "changes"} }

func (r *reader) mode() string {
	mode := strings.TrimSuffix(r.text("state_output"), "_id")
	if mode != "" && mode != "filter" && !slices.Contains(Modes(), mode) {
		r.problems.Add(r.pos("state_output", ""), "state_output is %q, and one of %s was expected", mode,
			strings.Join(Modes(), ", ")).
			WithHint(diag.Config, diag.DidYouMean(mode, Modes()))
	}
	return mode
}

func (r *reader) strategy(name string, known ...string) {
	v := r.text(name)
	if v != "" && !slices.Contains(known, v) {
		r.problems.Add(r.pos(name, ""), "%s is %q, and one of %s was expected", name, v, strings.Join(known, ", ")).
			WithHint(diag.Config, diag.DidYouMean(v, known))
	}
}

// sameEnv sets the environment of the pillar to that of the states, if the options require that.
func (r *reader) sameEnv() {
	if env := r.options.Value("saltenv"); r.flag("pillarenv_from_saltenv", false) && env != nil &&
		r.options.Value("pillarenv") == nil {
		r.options.Set("pillarenv", env)
	}
}

// ignored returns the options that this engine does not implement.
func (r *reader) ignored() []string {
	reasons := []struct{ name, reason string }{
		{"fileserver_backend", "states are read from file_roots alone"},
		{"gitfs_remotes", "states are read from file_roots alone"},
		{"master_tops", "a masterless Salt has none either; a top file may be a program, #!py"},
		{"module_dirs", "modules in Python are taken from the state tree, from _modules and its like"},
	}
	var all []string
	for _, o := range reasons {
		v, ok := r.options.Get(o.name)
		if !ok || !value.Truth(v) || o.name == "fileserver_backend" && rootsOnly(v) {
			continue
		}
		all = append(all, fmt.Sprintf("%s: %s is ignored: %s", r.pos(o.name, ""), o.name, o.reason))
	}
	return all
}

func rootsOnly(v any) bool {
	return !slices.ContainsFunc(texts(v), func(s string) bool { return s != "roots" && s != "file_roots" })
}

func (r *reader) pos(key, file string) diag.Pos {
	if s, ok := r.from[key]; ok {
		return s.pos(key)
	}
	return diag.Pos{File: file}
}

// text returns an option that is a string. Numbers and booleans are converted as they were written.
func (r *reader) text(name string) string {
	v, ok := r.options.Get(name)
	switch v.(type) {
	case *value.Map, *value.List:
		r.problems.Add(r.pos(name, ""), "%s is a %s, and a string was expected", name, value.TypeName(v))
		return ""
	}
	if !ok || v == nil {
		return ""
	}
	return value.Str(v)
}

func (r *reader) flag(name string, fallback bool) bool {
	v, ok := r.options.Get(name)
	if !ok || v == nil {
		return fallback
	}
	if b, ok := v.(bool); ok {
		return b
	}
	if name == "state_verbose" || name == "color" || name == "test" || name == "failhard" {
		r.problems.Add(r.pos(name, ""), "%s is %s, and True or False was expected", name, value.Repr(v))
	}
	return value.Truth(v)
}

func (r *reader) mapping(name string) *value.Map {
	v := r.options.Value(name)
	if v == nil {
		return nil
	}
	m, ok := v.(*value.Map)
	if !ok {
		r.problems.Add(r.pos(name, ""), "%s is a %s, and a mapping was expected", name, value.TypeName(v))
		return nil
	}
	return m
}

// roots returns file_roots or pillar_roots: directories, which may be patterns, by environment.
func (r *reader) roots(name, fallback string) []roots.Env {
	if r.options.Value(name) == nil {
		return []roots.Env{{Name: "base", Dirs: []string{fallback}}}
	}
	m := r.mapping(name)
	envs := []roots.Env{}
	for key, v := range m.All() {
		env := roots.Env{Name: value.Str(key)}
		dirs := texts(v)
		if _, isText := v.(string); isText || dirs == nil && v != nil && !isEmpty(v) {
			r.problems.Add(r.from[name].document.Pos(m, key), "%s of %s is a %s, and a list of directories was expected", name,
				env.Name, value.TypeName(v)).
				WithHint(diag.Config, "write each directory as `- /directory`")
			continue
		}
		for _, dir := range dirs {
			found, err := expand(dir)
			r.problems.AddError(r.from[name].document.Pos(m, key), err)
			env.Dirs = append(env.Dirs, found...)
		}
		envs = append(envs, env)
	}
	return envs
}

func isEmpty(v any) bool {
	l, ok := v.(*value.List)
	return ok && l.Len() == 0
}

// expand returns the directories that match a pattern, or dir itself if it is not a pattern or nothing matches.
// Relative paths start at the working directory, as in Salt.
func expand(dir string) ([]string, error) {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	if !strings.ContainsAny(dir, "*?[") {
		return []string{dir}, nil
	}
	found, err := walk.Glob(dir)
	if err != nil || len(found) > 0 {
		return found, err
	}
	return []string{dir}, nil
}
