package sls

import (
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/render"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// file is one SLS file being read.
type file struct {
	*gatherer
	env, name string
	path      string // in its tree
	doc       *render.Document
	data      *value.Map
}

func (f *file) problem(container, key any, format string, args ...any) *diag.Diagnostic {
	return f.problems.Add(f.doc.Pos(container, key), format, args...)
}

// takeIncludes removes the include declaration from the file and returns it.
func (f *file) takeIncludes() *value.List {
	v, ok := f.data.Get("include")
	if !ok {
		return value.NewList()
	}
	list, ok := v.(*value.List)
	if !ok {
		f.problem(f.data, "include", "include is a %s, and a list of SLS names was expected", value.TypeName(v)).
			WithHint(diag.SLS, "write each name as `- name`")
		f.data.Delete("include")
		return value.NewList()
	}
	f.data.Delete("include")
	return list
}

// takeExtend moves the extend declaration out of the states.
func (f *file) takeExtend() {
	v, ok := f.data.Get("extend")
	if !ok {
		return
	}
	extensions, ok := v.(*value.Map)
	if !ok {
		f.problem(f.data, "extend", "extend is a %s, and a mapping of IDs was expected", value.TypeName(v))
		f.data.Delete("extend")
		return
	}
	f.data.Delete("extend")
	for id, body := range extensions.All() {
		m, ok := body.(*value.Map)
		if !ok {
			f.problem(extensions, id, "the extension of %s is a %s, and a mapping of states was expected", value.Str(id),
				value.TypeName(body))
			continue
		}
		f.mark(m)
		f.homes[m] = home{f.doc, extensions, id}
		for _, key := range m.Names() {
			if list, ok := m.Value(key).(*value.List); ok {
				splitFunction(m, key, list)
			}
		}
	}
	f.data.Set(compile.KeyExtend, value.NewList(extensions))
}

// takeExclude moves the exclude declaration out of the states.
func (f *file) takeExclude() {
	v, ok := f.data.Get("exclude")
	if !ok {
		return
	}
	f.data.Delete("exclude")
	list, ok := v.(*value.List)
	if !ok {
		f.problem(f.data, "exclude", "exclude is a %s, and a list was expected", value.TypeName(v)).
			WithHint(diag.SLS, "write `- sls: name` or `- id: name`")
		return
	}
	f.data.Set(compile.KeyExclude, list)
}

// mark records the origin of a declaration.
func (f *file) mark(body *value.Map) {
	if !body.Has(compile.KeySLS) {
		body.Set(compile.KeySLS, f.name)
	}
	if !body.Has(compile.KeyEnv) {
		body.Set(compile.KeyEnv, f.env)
	}
}

// splitFunction converts file.managed: [...] to file: [..., managed].
func splitFunction(body *value.Map, key string, list *value.List) (state string) {
	state, function, ok := strings.Cut(key, ".")
	if !ok || strings.HasPrefix(key, "_") {
		return key
	}
	function, _, _ = strings.Cut(function, ".")
	body.Delete(key)
	list.Append(function)
	body.Set(state, list)
	return state
}

// declare converts every ID to the form that the compiler expects.
func (f *file) declare() {
	for _, id := range f.data.Keys() {
		if id == compile.KeyExtend || id == compile.KeyExclude {
			continue
		}
		v, _, _ := f.data.GetKey(id)
		switch body := v.(type) {
		case *value.Map:
			f.homes[body] = home{f.doc, f.data, id}
			f.declareBody(value.Str(id), body)
		case string:
			f.declareShort(id, body)
		default:
			f.problem(f.data, id, "ID %s holds a %s, and a mapping of states was expected", value.Str(id), value.TypeName(v)).
				WithHint(diag.SLS, "write `state.function:` below it, and below that its arguments")
			_, _ = f.data.DeleteKey(id) // the key is valid, since it is in the mapping
		}
	}
}

// declareShort reads `id: state.function`.
func (f *file) declareShort(id any, short string) {
	state, function, ok := strings.Cut(short, ".")
	if !ok {
		f.problem(f.data, id, "ID %s holds %q, and a state was expected", value.Str(id), short).
			WithHint(diag.SLS, "write `state.function`, such as pkg.installed")
		_, _ = f.data.DeleteKey(id)
		return
	}
	function, _, _ = strings.Cut(function, ".")
	body := value.NewMap(compile.KeySLS, f.name, compile.KeyEnv, f.env, state, value.NewList(function))
	f.homes[body] = home{f.doc, f.data, id}
	_ = f.data.SetKey(id, body)
}

func (f *file) declareBody(id string, body *value.Map) {
	var states []string
	for _, key := range body.Names() {
		list, ok := body.Value(key).(*value.List)
		if !ok || strings.HasPrefix(key, "_") {
			continue
		}
		state, _, _ := strings.Cut(key, ".")
		if strings.Contains(key, ".") && slices.Contains(states, state) {
			f.problem(body, key, "ID %s declares state %s twice", id, state).
				WithHint(diag.SLS, "give the second one an ID of its own")
			continue
		}
		state = splitFunction(body, key, list)
		states = append(states, state)
	}
	f.mark(body)
}

// include reads an included file, or all that a glob matches, before this one.
func (f *file) include(item any, at diag.Pos) {
	env, name := f.env, ""
	switch item := item.(type) {
	case string:
		name = item
	case *value.Map:
		for key, v := range item.All() {
			env, name = value.Str(key), value.Str(v)
		}
	default:
		f.problems.Add(at, "include holds %s, and the name of an SLS was expected",
			value.Repr(item)).WithHint(diag.SLS, "write each name as `- name`")
		return
	}
	if env != anyEnv && !f.loader.Tree.Has(env) {
		f.problems.Add(at, "there is no environment %q", env).
			WithHint(diag.Include, diag.DidYouMean(env, f.loader.Tree.Envs()))
		return
	}
	name, ok := f.absolute(name, at)
	if !ok {
		return
	}
	if env, ok = f.environment(env, name, at); !ok {
		return
	}
	for _, target := range f.expand(env, name) {
		f.includes = append(f.includes, compile.Include{Env: env, SLS: target, By: f.name, Pos: at})
		if f.seen[env+":"+target] {
			continue
		}
		if included := f.file(env, target, at); included != nil {
			f.merge(f.data, included)
		}
	}
}

// anyEnv stands for the one matched environment that has the file.
const anyEnv = "_xenv"

// environment returns the environment of an include.
func (f *file) environment(env, name string, at diag.Pos) (string, bool) {
	if env != anyEnv {
		return env, true
	}
	var found []string
	for _, m := range f.matches {
		if names := f.expand(m.Env, name); len(names) > 1 || f.exists(m.Env, name) {
			found = append(found, m.Env)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], true
	case slices.Contains(found, f.env):
		return f.env, true
	case len(found) == 0:
		f.missing(f.env, name, at)
	default:
		f.problems.Add(at, "SLS %q is in several environments: %s", name,
			strings.Join(found, ", ")).WithHint(diag.Include, "name the one you mean: `- environment: name`")
	}
	return "", false
}

func (f *file) exists(env, name string) bool {
	_, ok, err := f.loader.Tree.FindSLS(env, name)
	f.problems.AddError(diag.Pos{}, err)
	return ok
}

// absolute resolves .name and ..name, which are relative to this file. Dots alone mean the init.sls of that directory,
// whose SLS is then called "web.", as under Salt.
func (f *file) absolute(name string, at diag.Pos) (string, bool) {
	rest := strings.TrimLeft(name, ".")
	levels := len(name) - len(rest)
	if levels == 0 {
		return name, true
	}
	own := strings.TrimSuffix(f.name, ".")
	parts := strings.Split(own, ".")
	if strings.HasSuffix(f.path, "/init.sls") {
		parts = append(parts, "init")
	}
	if levels > len(parts) {
		f.problems.Add(at, "include %q leads out of the tree",
			name).WithHint(diag.Include, "each leading dot after the first goes up one directory")
		return "", false
	}
	above := strings.Join(parts[:len(parts)-levels], ".")
	if rest == "" && (above == "" || above == own) {
		f.problems.Add(at, "include %q names no other file",
			name).
			WithHint(diag.Include, "write the file behind the dots: `.name` is beside this one, `..name` a directory above")
		return "", false
	}
	if above == "" {
		return rest, true
	}
	return above + "." + rest, true
}
