package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/pillar"
	"github.com/corpus-agent/corpus-agent/state/pillar/external"
	"github.com/corpus-agent/corpus-agent/state/render"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// withExternal merges the data of the sources of ext_pillar over a pillar, one after the other. Each source receives
// the result of the previous ones.
func (s *Session) withExternal(ctx context.Context, pillar *value.Map, sources []external.Source) (*value.Map, error) {
	strategy := value.Strategy(s.option("pillar_source_merging_strategy"))
	if strategy == "" {
		strategy = value.Smart
	}
	for _, source := range sources {
		data, err := s.externalData(ctx, source, pillar)
		if err != nil {
			return pillar, sourceError(source, err)
		}
		if pillar, err = value.Merge(pillar, data, strategy, s.flag("pillar_merge_lists", false)); err != nil {
			return pillar, err
		}
	}
	return pillar, nil
}

// sourceError returns the error of a source. It wraps the *external.Failed of a source that the agent implements.
func sourceError(source external.Source, err error) error {
	var inFiles diag.List // of a repository or bucket
	var failed *external.Failed
	if errors.As(err, &failed) && errors.As(err, &inFiles) {
		inFiles = slices.Clone(inFiles)
		for i, d := range inFiles {
			own := *d
			own.Cause, inFiles[i] = failed, &own
		}
		return inFiles
	}
	d := diag.At(diag.Pos{}, "%v", err).WithHint(diag.External, diag.HintOf(err))
	if failed != nil {
		d.Cause = failed
	} else {
		d.Message = "ext_pillar " + source.Name + ": " + d.Message
	}
	return diag.List{d} // redaction keeps its causes
}

// externalData returns the data of one source: a module of the tree, or a source that the agent implements.
func (s *Session) externalData(ctx context.Context, e external.Source, pillar *value.Map) (*value.Map, error) {
	var v any
	var err error
	own := s.own.hides("pillar", e.Name) || s.own.claimed("pillar", e.Name)
	switch {
	case s.own.broken != nil:
		return nil, s.own.broken
	case own:
		v, err = s.own.worker.Do(ctx, "pillar", value.NewMap("name", e.Name, "argument", e.Argument, "pillar", pillar))
	default:
		v, err = s.externalWorld(pillar).Data(ctx, e)
	}
	if err != nil {
		return nil, err
	}
	if v == nil && !own { // such as the output of a command that prints nothing
		return value.NewMap(), nil
	}
	if data, ok := v.(*value.Map); ok {
		return data, nil
	}
	err = diag.External.Hint(fmt.Errorf("it returned a %s, and a mapping was expected", value.TypeName(v)),
		"change it to return a mapping of names to values, which is empty if there are none for this host")
	if own {
		return nil, err
	}
	return nil, &external.Failed{Source: e.Name, Err: err}
}

// externalWorld returns the World of the sources that the agent implements.
func (s *Session) externalWorld(pillar *value.Map) external.World {
	return external.World{ID: s.ID, Grains: s.Grains, Options: s.options, Pillar: pillar,
		Dirs:  s.pillars.Dirs("base"),
		Files: trustedFiles{s.Trees, s.pillars},
		Host:  s.Host, Buckets: s.Buckets,
		Secret: s.Redactor.Add,
		Compile: func(ctx context.Context, files roots.Files, env roots.Env) (*value.Map, error) {
			return s.compilePillarOf(ctx, roots.New(files, env), pillar)
		},
		Call:   s.agentActions.Call,
		Render: s.renderExternal,
		Member: func(group string) (bool, error) { return s.target(pillar).Match("nodegroup", group) },
	}
}

// compilePillarOf compiles the pillar that is in another tree than the pillar's own. Templates see the pillar so far.
func (s *Session) compilePillarOf(ctx context.Context, tree *roots.Roots, soFar *value.Map) (*value.Map, error) {
	c := s.pillarCompiler(tree, func() *value.Map { return soFar })
	c.Override = nil
	return c.Compile(ctx)
}

// pillarCompiler returns the compiler of the pillar in a tree. Its templates see the data that seen returns.
func (s *Session) pillarCompiler(tree *roots.Roots, seen func() *value.Map) *pillar.Compiler {
	return &pillar.Compiler{
		Tree: tree, Target: s.target(seen()), Env: s.option("pillarenv"), Override: s.Override,
		Strategy: value.Strategy(s.option("pillar_source_merging_strategy")), MergeLists: s.flag("pillar_merge_lists", false),
		IncludesWin: s.flag("pillar_includes_override_sls", false), TopRoots: s.TopRoots,
		Render: func(ctx context.Context, src render.Source, name string, defaults *value.Map) (*render.Document, error) {
			if s.PillarFile != nil {
				s.PillarFile(name)
			}
			vars := s.slsVars(src, name, seen())
			vars.Update(defaults)
			return s.renderIn(ctx, tree, src, vars)
		},
	}
}

// trustedFiles reads files of the host, and refuses those that an unprivileged user can change.
type trustedFiles struct {
	roots.Files
	tree *roots.Roots
}

// ReadFile is part of external.Files.
func (v trustedFiles) ReadFile(path string) ([]byte, error) { return v.tree.ReadFile(path) }

// CheckTrusted is part of external.Files.
func (v trustedFiles) CheckTrusted(path string) error {
	if err := v.tree.CheckTrusted(path); err != nil {
		return err
	}
	return host.CheckScript(v.Files, path)
}

// renderExternal renders a template whose includes are in a directory.
func (s *Session) renderExternal(ctx context.Context, dir, file, text string, more *value.Map) (string, error) {
	tree := roots.New(s.Trees, roots.Env{Name: "base", Dirs: []string{dir}})
	vars := value.NewMap("__salt__", s.templates.salt)
	vars.Update(more)
	return s.renderer.Text(withTree(ctx, tree), "jinja", render.Source{Name: file, File: file, Env: "base", Text: text},
		vars)
}
