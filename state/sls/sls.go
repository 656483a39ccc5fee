// Package sls loads SLS files: it renders them, follows their includes, and merges their declarations into high data.
//
// A file is read once per run. Included files come before the file that includes them. The declarations keep the form
// that Salt shows; in addition, the package records the document of each declaration, so that later errors have
// positions.
package sls

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/render"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/top"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Loader reads SLS files of a tree.
type Loader struct {
	Tree *roots.Roots
	// Render renders a file as the SLS with this name.
	Render func(ctx context.Context, src render.Source, sls string) (*render.Document, error)
	// Unordered leaves out the numbers that keep states in the order of their files (Salt's
	// state_auto_order: False).
	Unordered bool
}

// firstOrder is the number of the first state.
const firstOrder = 10000

// High reads the SLS files that a top file matched. Its error is a diag.List with the problems of all files.
func (l *Loader) High(ctx context.Context, matches []top.Match) (*compile.High, error) {
	g := l.gatherer(ctx, matches)
	for _, m := range matches {
		if !l.Tree.Has(m.Env) {
			g.problems.Add(diag.Pos{}, "there is no environment %q", m.Env).
				WithHint(diag.Include, diag.DidYouMean(m.Env, l.Tree.Envs()))
			continue
		}
		for _, pattern := range m.SLS {
			for _, name := range g.expand(m.Env, pattern) {
				if !g.seen[m.Env+":"+name] {
					g.merge(g.high, g.file(m.Env, name, m.At(pattern)))
				}
			}
		}
	}
	return g.gathered()
}

// Given reads an SLS file that is in no tree, and the files of the tree that it includes.
func (l *Loader) Given(ctx context.Context, src render.Source, name string) (*compile.High, error) {
	g := l.gatherer(ctx, []top.Match{{Env: src.Env, SLS: []string{name}}})
	g.merge(g.high, g.source(src, name))
	return g.gathered()
}

func (l *Loader) gatherer(ctx context.Context, matches []top.Match) *gatherer {
	return &gatherer{loader: l, ctx: ctx, matches: matches, seen: map[string]bool{}, high: value.NewMap(),
		order: firstOrder, homes: map[*value.Map]home{}}
}

func (g *gatherer) gathered() (*compile.High, error) {
	g.dropRepeatedExtensions()
	high := &compile.High{Data: g.high, Pos: g.pos, PosOf: g.posOf, Includes: g.includes, Unread: g.unread}
	if len(g.problems) > 0 { // reported together with the other problems
		g.problems.AddError(diag.Pos{}, compile.Verify(high))
	}
	return high, g.problems.Err()
}

// gatherer gathers the files of one run.
type gatherer struct {
	loader   *Loader
	ctx      context.Context
	matches  []top.Match
	seen     map[string]bool // env:sls
	high     *value.Map
	order    int
	docs     []*render.Document
	homes    map[*value.Map]home // of every declaration
	includes []compile.Include
	problems diag.List
	unread   []string // texts of the files that could not be parsed; "" for a missing file
}

// home is the position of a declaration: a key of a mapping of a file.
type home struct {
	doc       *render.Document
	container *value.Map
	key       any
}

// expand returns the SLS names that a glob matches, or the pattern itself if there are none, which is then reported as
// missing.
func (g *gatherer) expand(env, pattern string) []string {
	if !strings.ContainsAny(pattern, "*?[") {
		return []string{pattern}
	}
	states, err := g.loader.Tree.States(env)
	g.problems.AddError(diag.Pos{}, err)
	found := slices.DeleteFunc(slices.Clone(states), func(s string) bool { return !compile.Match(pattern, s) })
	if len(found) == 0 {
		return []string{pattern}
	}
	return found
}

// file reads an SLS file and the files that it includes; from is the position of the include.
func (g *gatherer) file(env, name string, from diag.Pos) *value.Map {
	g.seen[env+":"+name] = true
	if slices.Contains(strings.Split(strings.TrimSuffix(name, "."), "."), "") {
		g.problems.Add(from, "%q is not a name of an SLS: a part of it is empty",
			name).WithHint(diag.Include, "a dot separates directories and the file, as in web.server")
		return nil
	}
	path, ok, err := g.loader.Tree.FindSLS(env, name)
	if err != nil {
		g.unread = append(g.unread, "")
		g.problems.AddError(from, err)
		return nil
	}
	if !ok {
		g.unread = append(g.unread, "")
		g.missing(env, name, from)
		return nil
	}
	data, file, err := g.loader.Tree.Read(env, path)
	if err != nil {
		g.unread = append(g.unread, "")
		g.problems.AddError(diag.Pos{File: path}, err)
		return nil
	}
	return g.source(render.Source{Name: path, File: file, Env: env, Text: string(data)}, name)
}

// source renders an SLS file and reads the files that it includes.
func (g *gatherer) source(src render.Source, name string) *value.Map {
	doc, declarations, ok := g.render(src, name)
	if !ok {
		g.unread = append(g.unread, src.Text)
		return nil
	}
	f := &file{gatherer: g, env: src.Env, name: name, path: src.Name, doc: doc, data: declarations}
	includes := f.takeIncludes()
	f.takeExtend()
	f.takeExclude()
	f.declare()
	for i, item := range includes.Items {
		f.include(item, doc.Pos(includes, i))
	}
	if !g.loader.Unordered {
		g.number(f.data)
	}
	return f.data
}

func (g *gatherer) missing(env, name string, from diag.Pos) {
	states, _ := g.loader.Tree.States(env) // without a list there is no suggestion
	hint := ""
	if dotted := slsName(name, states); dotted != name {
		hint = fmt.Sprintf("write %s: an SLS is named by its path below the tree, with dots and without .sls", dotted)
	} else if hint = diag.DidYouMean(name, states); hint == "" {
		base := strings.ReplaceAll(name, ".", "/")
		hint = fmt.Sprintf("make %s.sls or %s/init.sls in one of %s", base, base, strings.Join(g.loader.Tree.Dirs(env), ", "))
	}
	g.problems.Add(from, "there is no SLS %q in environment %s", name, env).WithHint(diag.Include, hint)
}

// slsName returns the name of the SLS that a path of its file means. If the name is not a path, it returns the name
// itself.
func slsName(name string, states []string) string {
	path, isFile := strings.CutSuffix(name, ".sls")
	if !isFile && !strings.Contains(name, "/") {
		return name
	}
	dotted := strings.TrimSuffix(strings.ReplaceAll(strings.Trim(path, "/"), "/", "."), ".init")
	for rest := dotted; ; {
		if slices.Contains(states, rest) {
			return rest
		}
		var more bool
		if _, rest, more = strings.Cut(rest, "."); !more {
			return dotted
		}
	}
}

func (g *gatherer) render(src render.Source, name string) (*render.Document, *value.Map, bool) {
	doc, err := g.loader.Render(g.ctx, src, name)
	if err != nil {
		g.problems.AddError(diag.Pos{File: src.File}, err)
		return nil, nil, false
	}
	declarations, err := doc.Mapping()
	if err != nil {
		g.problems.AddError(diag.Pos{File: src.File}, err)
		return nil, nil, false
	}
	g.docs = append(g.docs, doc)
	return doc, declarations, true
}
