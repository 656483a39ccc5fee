// Package pillar compiles a host's private data: the pillar files that its top file matches, and the files that they
// include, merged in order.
//
// Any problem is an error, since no host may converge with an incomplete pillar.
package pillar

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

// Compiler compiles pillars.
type Compiler struct {
	Tree *roots.Roots
	// Render renders a pillar file of this name; defaults has the values of its include.
	Render func(ctx context.Context, src render.Source, sls string, defaults *value.Map) (*render.Document, error)
	Target *top.Target
	Env    string // the only environment to use; "" for all

	Strategy    value.Strategy // how files are merged; smart by default
	MergeLists  bool           // lists are joined instead of replaced
	IncludesWin bool           // included files win over the including file
	Override    *value.Map     // wins over all files; may be nil
	Under       *value.Map     // all files win over it; may be nil
	TopRoots    bool           // use the top files of all roots; see top.Loader.Roots
}

// Compile returns the pillar. Its error is a diag.List.
func (c *Compiler) Compile(ctx context.Context) (*value.Map, error) {
	loader := &top.Loader{Tree: c.Tree, Target: c.Target, Only: c.Env, Roots: c.TopRoots,
		Render: func(ctx context.Context, src render.Source, sls string) (*render.Document, error) {
			return c.Render(ctx, src, sls, nil)
		}}
	if c.Strategy == value.None && c.Env == "" {
		loader.Only = "base"
	}
	matches, optional, err := loader.Pillar(ctx)
	if err != nil {
		return nil, err
	}
	m := &merger{Compiler: c, ctx: ctx, optional: optional}
	pillar := m.all(matches)
	if c.Under.Len() > 0 {
		pillar = m.merge(c.Under.Clone(), pillar)
	}
	return m.overridden(pillar), m.problems.Err()
}

// Overridden merges Override over a pillar, as Compile does.
func (c *Compiler) Overridden(pillar *value.Map) (*value.Map, error) {
	m := &merger{Compiler: c}
	return m.overridden(pillar), m.problems.Err()
}

func (m *merger) overridden(pillar *value.Map) *value.Map {
	if m.Override.Len() == 0 {
		return pillar
	}
	return m.merge(pillar, m.Override)
}

// merger merges the files of one compile.
type merger struct {
	*Compiler
	ctx      context.Context
	optional map[string]bool       // optional files, as env:sls
	rendered map[string]*value.Map // of the present environment, by SLS
	problems diag.List
}

// merge merges more over data.
func (m *merger) merge(data, more *value.Map) *value.Map {
	strategy := m.Strategy
	if strategy == "" {
		strategy = value.Smart
	}
	merged, err := value.Merge(data, more, strategy, m.MergeLists)
	if err != nil {
		m.problems.Add(diag.Pos{}, "%v", err).WithHint(diag.Config, "pillar_source_merging_strategy is one of "+
			fmt.Sprint(value.Strategies()))
		return data
	}
	return merged
}

func (m *merger) all(matches []top.Match) *value.Map {
	pillar := value.NewMap()
	pillar.Update(m.Override)
	for _, match := range matches {
		m.rendered = map[string]*value.Map{}
		for _, pattern := range match.SLS {
			for _, sls := range m.expand(match.Env, pattern) {
				if data := m.file(match.Env, sls, nil, match.At(pattern)); data != nil {
					pillar = m.merge(pillar, data)
				}
			}
		}
	}
	return pillar
}

// expand returns the files that a glob matches, or the pattern itself if there are none, which is then reported as
// missing.
func (m *merger) expand(env, pattern string) []string {
	if !strings.ContainsAny(pattern, "*?[") {
		return []string{pattern}
	}
	names, err := m.Tree.States(env)
	m.problems.AddError(diag.Pos{}, err)
	found := slices.DeleteFunc(slices.Clone(names), func(s string) bool { return !compile.Match(pattern, s) })
	if len(found) == 0 {
		return []string{pattern}
	}
	return found
}

// file renders a pillar file and merges the files that it includes. It returns nil for a missing optional file, or
// after a problem, which it has reported.
func (m *merger) file(env, sls string, defaults *value.Map, from diag.Pos) *value.Map {
	path, ok, err := m.Tree.FindSLS(env, sls)
	if err != nil {
		m.problems.AddError(from, err)
		return nil
	}
	if !ok {
		m.missing(env, sls, from)
		return nil
	}
	data, file, err := m.Tree.Read(env, path)
	var doc *render.Document
	if err == nil {
		doc, err = m.Render(m.ctx, render.Source{Name: path, File: file, Env: env, Text: string(data)}, sls, defaults)
	}
	var own *value.Map
	if err == nil {
		own, err = doc.Mapping()
	}
	if err != nil {
		m.problems.AddError(diag.Pos{File: file}, err)
		return nil
	}
	m.rendered[sls] = own
	return m.including(env, sls, path, doc, own)
}

func (m *merger) missing(env, sls string, from diag.Pos) {
	if m.optional[env+":"+sls] {
		return
	}
	names, _ := m.Tree.States(env) // without a list there is no suggestion
	hint := diag.DidYouMean(sls, names)
	if hint == "" {
		hint = fmt.Sprintf("make %s.sls in one of %s", strings.ReplaceAll(sls, ".", "/"),
			strings.Join(m.Tree.Dirs(env), ", "))
	}
	m.problems.Add(from, "there is no pillar file %q in environment %s", sls, env).WithHint(diag.Pillar, hint)
}

// including merges the files that a file includes, in order, and then the file over them.
func (m *merger) including(env, sls, path string, doc *render.Document, own *value.Map) *value.Map {
	v, ok := own.Get("include")
	if !ok {
		return own
	}
	list, ok := v.(*value.List)
	if !ok {
		m.problems.Add(doc.Pos(own, "include"), "include is a %s, and a list of file names was expected", value.TypeName(v)).
			WithHint(diag.Pillar, "write each name as `- name`")
		return own
	}
	own.Delete("include")
	var included []*value.Map
	for i, item := range list.Items {
		included = append(included, m.include(env, sls, path, item, doc.Pos(list, i))...)
	}
	if m.IncludesWin {
		for _, data := range included {
			own = m.merge(own, data)
		}
		return own
	}
	merged := value.NewMap()
	for i, data := range append(included, own) {
		if i == 0 {
			merged = data
			continue
		}
		merged = m.merge(merged, data)
	}
	return merged
}

// include reads the files of one item of an include: a name, or a name with defaults for its template and a key for the
// data.
func (m *merger) include(env, sls, path string, item any, at diag.Pos) (included []*value.Map) {
	name, key := value.Str(item), ""
	var defaults *value.Map
	if mapping, ok := item.(*value.Map); ok {
		for k, v := range mapping.All() {
			options, _ := v.(*value.Map)
			name = value.Str(k)
			defaults, _ = options.Value("defaults").(*value.Map)
			key, _ = options.Value("key").(string)
		}
	}
	for _, target := range m.targets(env, sls, path, name) {
		data, known := m.rendered[target]
		if !known {
			data = m.file(env, target, defaults, at)
		}
		if data.Len() > 0 {
			included = append(included, below(key, data))
		}
	}
	return included
}

// targets returns the files that a name in an include may mean: relative to the top of the tree and, with a leading
// dot, to the including file.
func (m *merger) targets(env, sls, path, name string) []string {
	found := m.existing(env, strings.ReplaceAll(strings.TrimLeft(name, "."), "/", "."))
	if rest, ok := strings.CutPrefix(name, "."); ok {
		parts := strings.Split(sls, ".")
		if !strings.HasSuffix(path, "/init.sls") {
			parts = parts[:len(parts)-1]
		}
		name = strings.Join(append(slices.Clone(parts), rest), ".")
	}
	for _, more := range m.existing(env, name) {
		if !slices.Contains(found, more) {
			found = append(found, more)
		}
	}
	if len(found) == 0 {
		return []string{name}
	}
	return found
}

// existing returns the existing files that a name or glob means.
func (m *merger) existing(env, pattern string) []string {
	return slices.DeleteFunc(m.expand(env, pattern), func(sls string) bool {
		_, ok, err := m.Tree.FindSLS(env, sls)
		m.problems.AddError(diag.Pos{}, err)
		return !ok
	})
}

// below returns data under the key a:b.
func below(key string, data *value.Map) *value.Map {
	if key == "" {
		return data
	}
	parts := strings.Split(key, ":")
	for _, part := range slices.Backward(parts) {
		data = value.NewMap(part, data)
	}
	return data
}
