package top

import (
	"context"
	"slices"
	"strconv"

	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/render"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// entry is one target of an environment.
type entry struct {
	target  string
	items   *value.List
	order   int
	file    file
	missing bool // its SLS files may be missing
}

// parse renders the text of a top file, and reads the files that it includes.
func (l *Loader) parse(ctx context.Context, env string, src render.Source, sls string, problems *diag.List) []file {
	path := src.File
	doc, err := l.Render(ctx, src, sls)
	var m *value.Map
	if err == nil {
		m, err = doc.Mapping()
	}
	if err != nil {
		problems.AddError(diag.Pos{File: path}, err)
		return nil
	}
	files := []file{{env: env, data: m, doc: doc}}
	include, _ := m.Value("include").(*value.List)
	m.Delete("include")
	if include == nil {
		return files
	}
	for _, item := range include.Items {
		for _, sls := range l.expand(env, value.Str(item), problems) {
			name, ok, err := l.Tree.FindSLS(env, sls)
			problems.AddError(diag.Pos{}, err)
			if ok {
				files = append(files, l.read(ctx, env, name, sls, problems)...)
			}
		}
	}
	return files
}

func (l *Loader) expand(env, pattern string, problems *diag.List) []string {
	states, err := l.Tree.States(env)
	problems.AddError(diag.Pos{}, err)
	var found []string
	for _, s := range states {
		if compile.Match(pattern, s) {
			found = append(found, s)
		}
	}
	return found
}

// add adds the sections of a file for which counts returns true.
func (l *Loader) add(f file, t *table, counts func(env string) bool, problems *diag.List) {
	for key, section := range f.data.All() {
		env := value.Str(key)
		if !counts(env) {
			continue
		}
		targets, ok := section.(*value.Map)
		if !ok {
			problems.Add(f.doc.Pos(f.data, key), "environment %s holds a %s, and a mapping of targets was expected", env,
				value.TypeName(section)).
				WithHint(diag.Top, "write `'*':` below it, and below that a list of SLS names")
			continue
		}
		for target, items := range targets.All() {
			if e, ok := l.entry(f, targets, target, items, problems); ok {
				t.set(env, e)
			}
		}
	}
}

func (l *Loader) entry(f file, targets *value.Map, target, items any, problems *diag.List) (entry, bool) {
	list, ok := items.(*value.List)
	if name, isName := items.(string); isName {
		list, ok = value.NewList(name), true
	}
	if !ok {
		problems.Add(f.doc.Pos(targets, target), "target %s holds a %s, and a list of SLS names was expected",
			value.Repr(target), value.TypeName(items)).
			WithHint(diag.Top, "write each SLS name as `- name`")
		return entry{}, false
	}
	e := entry{target: value.Str(target), items: list, file: f}
	for _, item := range list.Items {
		m, _ := item.(*value.Map)
		e.missing = e.missing || value.Truth(m.Value("ignore_missing"))
		if order, ok := m.Get("order"); ok {
			e.order, _ = strconv.Atoi(value.Str(order))
		}
	}
	return e, true
}

// match matches every target and lists the SLS files of the matching ones.
func (l *Loader) match(t *table, problems *diag.List) []Match {
	m := &giver{loader: l, problems: problems}
	for _, env := range t.envs {
		if l.Only != "" && env != l.Only {
			continue
		}
		for _, e := range t.entries[env] {
			m.entry(env, e.file, e.target, e.items)
		}
	}
	return m.matches
}

type giver struct {
	loader   *Loader
	problems *diag.List
	matches  []Match
}

func (m *giver) entry(env string, f file, target string, items *value.List) {
	kind := "compound"
	for _, item := range items.Items {
		if option, ok := item.(*value.Map); ok && option.Has("match") {
			kind = value.Str(option.Value("match"))
		}
	}
	ok, err := m.loader.Target.Match(kind, target)
	if err != nil {
		m.problems.Add(f.doc.Pos(items, 0), "target %q: %v", target, err).WithHint(diag.Top, diag.HintOf(err))
	}
	if !ok {
		return
	}
	i := m.match(env)
	for n, item := range items.Items {
		switch item := item.(type) {
		case string:
			m.give(i, item, f.doc.Pos(items, n))
		case *value.Map:
			m.option(env, f, item)
		}
	}
}

// option reads a mapping among SLS names: an option of the target, a target inside of it, or an
// SLS of another environment.
func (m *giver) option(env string, f file, item *value.Map) {
	if inner, ok := item.Value("subfilter").(*value.Map); ok {
		for target, items := range inner.All() {
			if list, ok := items.(*value.List); ok {
				m.entry(env, f, value.Str(target), list)
			}
		}
		return
	}
	for key, v := range item.All() {
		if other := value.Str(key); m.loader.Tree.Has(other) {
			m.give(m.match(other), value.Str(v), f.doc.Pos(item, key))
		}
	}
}

// match returns the index of the match of an environment, and adds one if there is none.
func (m *giver) match(env string) int {
	i := slices.IndexFunc(m.matches, func(x Match) bool { return x.Env == env })
	if i < 0 {
		m.matches = append(m.matches, Match{Env: env, at: map[string]diag.Pos{}})
		i = len(m.matches) - 1
	}
	return i
}

func (m *giver) give(i int, sls string, at diag.Pos) {
	m.matches[i].SLS = append(m.matches[i].SLS, sls)
	if _, known := m.matches[i].at[sls]; !known {
		m.matches[i].at[sls] = at
	}
}
