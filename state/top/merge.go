package top

import (
	"slices"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// mergeBase implements the default strategy: it uses all sections of base's top file, and of the top file of another
// environment only the section for that environment, if base has none for it.
func (l *Loader) mergeBase(files []file, t *table, problems *diag.List) {
	first := "base"
	if l.Only != "" {
		first = l.Only
	}
	for _, f := range files {
		if f.env == first {
			l.add(f, t, func(string) bool { return true }, problems)
		}
	}
	said := slices.Clone(t.envs)
	for _, f := range files {
		if f.env != first {
			l.add(f, t, func(env string) bool { return env == f.env && !slices.Contains(said, env) }, problems)
		}
	}
}

// mergeSame uses the section of each top file for its own environment, and for an environment without a top file the
// section of the default one.
func (l *Loader) mergeSame(files []file, t *table, problems *diag.List) {
	for _, env := range l.Tree.Envs() {
		own := func(e string) bool { return e == env }
		source := env
		if !slices.ContainsFunc(files, func(f file) bool { return f.env == env }) {
			source = l.Base
		}
		for _, f := range files {
			if f.env == source {
				l.add(f, t, own, problems)
			}
		}
	}
}

// mergeAll joins the lists of one target in several top files.
func (l *Loader) mergeAll(files []file, t *table, problems *diag.List) {
	for _, f := range files {
		one := newTable()
		l.add(f, one, func(string) bool { return true }, problems)
		for _, env := range one.envs {
			for _, e := range one.entries[env] {
				if old, ok := t.get(env, e.target); ok && old.file.root == e.file.root {
					e.items = together(old.items, e.items)
				}
				t.set(env, e)
			}
		}
	}
}

func together(a, b *value.List) *value.List {
	merged := value.NewList(a.Items...)
	for _, item := range b.Items {
		if !value.Contains(merged.Items, item) {
			merged.Append(item)
		}
	}
	return merged
}
