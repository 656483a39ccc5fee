// Package session connects the parts of the native engine for one use of it.
//
// A Session has the state tree and the pillar tree. It renders SLS files, evaluates top files, and compiles and runs
// states. Templates call functions, functions read the pillar, and the pillar is made of templates; so these parts do
// not import each other, but use each other through the session. The session also calls functions by name, as users do
// with salt-call: see call.go and callshow.go.
package session

import (
	"context"
	"slices"
	"sync"

	"github.com/corpus-agent/corpus-agent/state/ahead"
	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/pillar/external"
	"github.com/corpus-agent/corpus-agent/state/redact"
	"github.com/corpus-agent/corpus-agent/state/render"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/top"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Session is one use of the native engine on a host: its trees, and the data computed from them so far. The pillar is
// compiled when it is first read.
type Session struct {
	Settings
	states    *roots.Roots
	pillars   *roots.Roots
	templates *templates
	renderer  *render.Renderer
	sources   *Sources
	decoder   module.Decoder
	functions Functions
	actions   TreeFunctions // functions, and those that change the host
	own       *ownModules   // the tree's own modules, in Python

	agentActions function.Table // actions without those of the tree
	registryMu   sync.Mutex
	modules      module.Registry
	loaded       map[string]bool // names of states for which loadState has looked in the tree
	options      *value.Map

	pillar    *value.Map
	pillarErr error
	hasPillar bool
	compiling bool // the pillar is being compiled; reading it returns what exists so far
	retcode   int  // of the last command of a function
	partial   bool // a part of the pillar is accepted if the whole does not compile
}

// Functions are the functions that templates may call.
type Functions interface {
	Call(ctx context.Context, name string, args []any, kwargs *value.Map) (any, error)
	Has(name string) bool
	Names() []string
	Unknown(name string) error // the reason why the function does not exist
	// Lost returns the error for which it is unknown whether a function exists that Has does not find, or nil.
	Lost(name string) error
}

// New makes a session. It reads nothing yet.
func New(settings Settings) *Session {
	if settings.Options == nil {
		settings.Options = value.NewMap()
	}
	if settings.Grains == nil {
		settings.Grains = value.NewMap()
	}
	if settings.Tables == nil {
		settings.Tables = noTables{}
	}
	if settings.Redactor == nil {
		settings.Redactor = &redact.Redactor{}
	}
	if settings.Until == nil {
		settings.Until = context.Background()
	}
	if settings.Trees == nil {
		settings.Trees = settings.Host.Files
	}
	settings.Trees = host.Anchored(settings.Trees, append(allDirs(settings.States), allDirs(settings.Pillar)...))
	s := &Session{Settings: settings}
	s.states = roots.New(settings.Trees, settings.States...)
	s.pillars = roots.New(settings.Trees, settings.Pillar...)
	s.options = s.MinionOptions()
	s.sources = &Sources{tree: s.states, trees: settings.Trees, host: settings.Host, remote: settings.Remote,
		releases: slices.Concat(settings.Releases, allDirs(settings.States))}
	s.own = newOwnModules(s)
	s.functions, s.actions = s.newFunctions()
	s.modules = s.Tables.States(s)
	s.templates = newTemplates(s)
	s.renderer = &render.Renderer{Templates: s.templates, Programs: s.own, Decrypters: s.decrypters(),
		Default: s.option("renderer"), Configurations: &render.Configurations{}}
	return s
}

// target returns the data of the host against which top files match.
func (s *Session) target(pillarData *value.Map) *top.Target {
	groups, _ := s.options.Value("nodegroups").(*value.Map)
	return &top.Target{ID: s.ID, Grains: s.Grains, Pillar: pillarData, Nodegroups: groups,
		Warn: func(message string) { s.log("warning", message) }}
}

// Pillar returns the pillar, which it compiles at the first call. If the pillar does not compile, the error is a
// *PillarError, and the returned map has the part that compiles.
func (s *Session) Pillar(ctx context.Context) (*value.Map, error) {
	if s.hasPillar && s.partial {
		return s.pillar, nil
	}
	if s.hasPillar || s.compiling {
		return s.pillar, s.pillarErr
	}
	s.compiling = true
	s.pillar = value.NewMap()
	s.pillar.Update(s.Override)
	data, err := s.compilePillar(ctx)
	s.compiling, s.hasPillar = false, true
	if data != nil {
		s.pillar = data
	}
	if err != nil {
		s.pillarErr = &PillarError{Problems: s.shown(err)}
	}
	return s.pillar, s.pillarErr
}

func (s *Session) compilePillar(ctx context.Context) (*value.Map, error) {
	c := s.pillarCompiler(s.pillars, func() *value.Map { return s.pillar })
	sources, err := external.Parse(s.options.Value("ext_pillar"))
	if err != nil {
		return s.pillar, diag.At(diag.Pos{}, "%v", err).WithHint(diag.External, diag.HintOf(err))
	}
	first := s.flag("ext_pillar_first", false)
	if first && len(sources) > 0 {
		if s.pillar, err = s.withExternal(ctx, s.pillar, sources); err != nil {
			return s.pillar, err
		}
		c.Target, c.Under = s.target(s.pillar), s.pillar
	}
	data, err := c.Compile(ctx)
	if err == nil && !first && len(sources) > 0 {
		if data, err = s.withExternal(ctx, data, sources); err == nil {
			data, err = c.Overridden(data)
		}
	}
	if err != nil {
		return data, err
	}
	return data, s.decryptPillar(ctx, data)
}

// renderIn renders a file of the given tree.
func (s *Session) renderIn(ctx context.Context, tree *roots.Roots, src render.Source,
	vars *value.Map) (*render.Document, error) {
	return s.renderer.Render(withTree(ctx, tree), src, vars)
}

// renderState renders an SLS file of the state tree.
func (s *Session) renderState(ctx context.Context, src render.Source, name string) (*render.Document, error) {
	data, err := s.Pillar(ctx)
	if err != nil {
		return nil, err
	}
	return s.renderIn(ctx, s.states, src, s.slsVars(src, name, data))
}

// Top returns the SLS files that the top file assigns to this host.
func (s *Session) Top(ctx context.Context) ([]top.Match, error) {
	data, err := s.Pillar(ctx)
	if err != nil {
		return nil, s.besidePillar(ctx, err, nil, false)
	}
	matches, err := s.topLoader(data, s.renderState).States(ctx)
	if err != nil {
		high, inFiles := s.loader().High(ctx, matches)
		err = together(err, inFiles, s.undeclarable(high))
	}
	return matches, s.shown(err)
}

func (s *Session) topLoader(data *value.Map, read func(context.Context, render.Source, string) (*render.Document,
	error)) *top.Loader {
	return &top.Loader{
		Tree: s.states, Target: s.target(data), Only: s.option("saltenv"), Render: read,
		Merge: s.option("top_file_merging_strategy"), Base: s.option("default_top"), Roots: s.TopRoots,
	}
}

// Close ends the worker of Python modules, if it runs. Without Close, the worker ends with this program.
func (s *Session) Close() { s.own.Close() }

// Run runs a program.
func (s *Session) Run(ctx context.Context, p *compile.Program, o exec.Observer) *exec.Results {
	if urls := s.expected(p); len(urls) > 0 && !s.Test && s.sources.ahead == nil {
		s.sources.ahead = ahead.Start(ctx, s.Remote.Open, urls)
		defer func() {
			s.sources.ahead.Close()
			s.sources.ahead = nil
		}()
	}
	return s.runner(o).Run(ctx, p)
}

func (s *Session) runner(o exec.Observer) *exec.Runner {
	r := &exec.Runner{Host: s.Host, Modules: s.registry(), Call: s.functions, Observer: o, Redactor: s.Redactor,
		Test: s.Test, Failhard: s.Failhard, Grace: s.Grace, Parallel: s.Parallel}
	if shell, ok := s.Grains.Value("shell").(string); ok {
		r.Shell = shell
	}
	return r
}

// slsVars returns the variables of an SLS file: those of every template, and the variables with which formulas find
// their own files.
func (s *Session) slsVars(src render.Source, name string, data *value.Map) *value.Map {
	vars := s.vars(src.Env, data)
	vars.Set("sls", name)
	vars.Update(placeVars(src, name))
	return vars
}

// vars returns the variables of every template.
func (s *Session) vars(env string, data *value.Map) *value.Map {
	vars := value.NewMap("salt", s.templates.salt, "grains", s.Grains, "pillar", data, "opts", s.options, "saltenv", env)
	if s.Vars != nil {
		vars.Update(s.Vars)
	}
	return vars
}
