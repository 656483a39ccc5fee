// Package top decides which SLS files a host gets: it reads top files and matches their targets.
//
// A top file maps environments to targets, and targets to SLS names and options. States and pillar read their top files
// in the same way and merge several of them differently, as Salt does: for states, the top file of the base environment
// is authoritative; for pillar, all of them are used, and targets may have an order.
package top

import (
	"context"
	"slices"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/render"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Match lists the SLS files of an environment that a host gets, in order.
type Match struct {
	Env string
	SLS []string
	at  map[string]diag.Pos // positions of these in top files
}

// At returns the first position at which a top file names an SLS; the zero Pos for none.
func (m Match) At(sls string) diag.Pos { return m.at[sls] }

// Loader reads top files.
type Loader struct {
	Tree   *roots.Roots
	Render func(ctx context.Context, src render.Source, sls string) (*render.Document, error)
	Target *Target
	Only   string // the only environment to use; "" for all
	Merge  string // how top files of states are merged: merge, same or merge_all
	Base   string // environment whose top file replaces missing ones with merge same
	// Roots says to use the top files of all roots of an environment, the last root's first, and not only that of the
	// first root.
	Roots bool
}

// File is the name of a top file in its tree.
const File = "top.sls"

// file is a rendered top file, or one that it includes.
type file struct {
	env  string
	root int // index of its root, if the top files of all roots count
	data *value.Map
	doc  *render.Document
}

// table has the targets of all environments, in order.
type table struct {
	envs    []string
	entries map[string][]entry
}

func newTable() *table { return &table{entries: map[string][]entry{}} }

func (t *table) set(env string, e entry) {
	if _, known := t.entries[env]; !known {
		t.envs = append(t.envs, env)
	}
	for i, old := range t.entries[env] {
		if old.target == e.target && old.file.root == e.file.root {
			t.entries[env][i] = e
			return
		}
	}
	t.entries[env] = append(t.entries[env], e)
}

func (t *table) get(env, target string) (entry, bool) {
	i := slices.IndexFunc(t.entries[env], func(e entry) bool { return e.target == target })
	if i < 0 {
		return entry{}, false
	}
	return t.entries[env][i], true
}

// States returns the SLS files of a highstate. With an error, it returns those that it could find. A tree without a top
// file matches nothing.
func (l *Loader) States(ctx context.Context) ([]Match, error) {
	files, err := l.files(ctx)
	var problems diag.List
	problems.AddError(diag.Pos{}, err)
	t := newTable()
	switch l.Merge {
	case "", "merge":
		l.mergeBase(files, t, &problems)
	case "same":
		l.mergeSame(files, t, &problems)
	case "merge_all":
		l.mergeAll(files, t, &problems)
	default:
		problems.Add(diag.Pos{}, "top_file_merging_strategy is %q", l.Merge).
			WithHint(diag.Config, "use merge, same or merge_all")
	}
	matches := l.match(t, &problems)
	if l.Roots {
		for i := range matches {
			matches[i].SLS = unique(matches[i].SLS)
		}
	}
	return matches, problems.Err()
}

// Pillar returns the SLS files of the pillar, and those of them that may be missing.
func (l *Loader) Pillar(ctx context.Context) (matches []Match, optional map[string]bool, err error) {
	files, err := l.files(ctx)
	if err != nil {
		return nil, nil, err
	}
	var problems diag.List
	t := newTable()
	for _, f := range files {
		l.add(f, t, func(string) bool { return true }, &problems)
	}
	for _, entries := range t.entries {
		structsort.Func(entries, func(a, b entry) int { return a.order - b.order })
	}
	optional = t.optional()
	matches = l.match(t, &problems)
	for i := range matches {
		matches[i].SLS = unique(matches[i].SLS)
	}
	return matches, optional, problems.Err()
}

// optional returns the SLS files that may be missing, as ENVIRONMENT:NAME.
func (t *table) optional() map[string]bool {
	names := map[string]bool{}
	for env, entries := range t.entries {
		for _, e := range entries {
			for _, item := range e.items.Items {
				if name, ok := item.(string); ok && e.missing {
					names[env+":"+name] = true
				}
			}
		}
	}
	return names
}

func unique(names []string) []string {
	var list []string
	for _, name := range names {
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// files renders the top files of all environments, and the files that they include.
func (l *Loader) files(ctx context.Context) ([]file, error) {
	envs := l.Tree.Envs()
	if l.Only != "" {
		envs = []string{l.Only}
	}
	var files []file
	var problems diag.List
	for _, env := range envs {
		if l.Roots {
			files = append(files, l.readRoots(ctx, env, &problems)...)
			continue
		}
		files = append(files, l.read(ctx, env, File, "", &problems)...)
	}
	return files, problems.Err()
}

// readRoots calls read for the top file of each root, the last root's first.
func (l *Loader) readRoots(ctx context.Context, env string, problems *diag.List) (files []file) {
	paths, err := l.Tree.FindAll(env, File)
	problems.AddError(diag.Pos{}, err)
	for i, path := range slices.Backward(paths) {
		data, err := l.Tree.ReadFile(path)
		if err != nil {
			problems.AddError(diag.Pos{File: path}, err)
			continue
		}
		for _, f := range l.parse(ctx, env, render.Source{Name: File, File: path, Env: env, Text: string(data)}, "",
			problems) {
			f.root = i
			files = append(files, f)
		}
	}
	return files
}

// read renders a top file and the files that it includes. It returns nil if the file does not exist; one that cannot be
// read is an error.
func (l *Loader) read(ctx context.Context, env, name, sls string, problems *diag.List) []file {
	data, path, err := l.Tree.Read(env, name)
	if found, err := walk.Found(err); err != nil || !found {
		problems.AddError(diag.Pos{}, err)
		return nil
	}
	return l.parse(ctx, env, render.Source{Name: name, File: path, Env: env, Text: string(data)}, sls, problems)
}

// Map returns matches in the form in which Salt shows a top file.
func Map(matches []Match) *value.Map {
	m := value.NewMap()
	for _, match := range matches {
		m.Set(match.Env, value.Strings(match.SLS...))
	}
	return m
}
