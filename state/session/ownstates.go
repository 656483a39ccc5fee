package session

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/python"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// ownState is a Python state function of the tree. A dry run calls it in test mode; if its module ignores test mode, a
// dry run does not call it.
type ownState struct {
	Arguments *value.Map `sls:"__arguments__"`
	Others    *value.Map `sls:"*"`
	own       *ownModules
	name      string // state.function
	takes     []function.Parameter
	sfun      string // of mod_watch, the function that watches
}

// Check is part of module.Resource. The result is unknown, since only a call of the function can tell the changes.
func (s *ownState) Check(context.Context, *host.Host) (module.Diff, error) {
	return module.Diff{Unknown: true}, nil
}

// Rehearse is part of module.Rehearser.
func (s *ownState) Rehearse(ctx context.Context, h *host.Host) (module.Diff, error) {
	answer, err := s.call(ctx, h, true)
	if err != nil {
		return module.Diff{}, err
	}
	if value.Truth(answer.Value("unseen")) {
		return module.Diff{Unknown: true, Comment: s.name + " ignores test mode, so a dry run does not call it"}, nil
	}
	changes, _ := answer.Value("changes").(*value.Map)
	comment := value.Str(answer.Value("comment"))
	d := module.Diff{Changes: changes, Comment: comment, Warnings: warningsOf(answer), More: moreOf(answer)}
	switch answer.Value("result") {
	case false:
		return d, python.Failure(comment)
	case nil:
		d.Unknown = changes.Len() == 0
	}
	return d, nil
}

// Apply is part of module.Resource.
func (s *ownState) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	if err := h.RecordCommand(ctx, s.name+" (Python)"); err != nil {
		return module.Report{}, err
	}
	answer, err := s.call(ctx, h, false)
	h.Acted(ctx)
	if err != nil {
		return module.Report{}, err
	}
	return reportOf(answer)
}

// reportOf returns the answer of a state function as a report, and an error if its result is false.
func reportOf(answer *value.Map) (module.Report, error) {
	changes, _ := answer.Value("changes").(*value.Map)
	report := module.Report{Changes: changes, Comment: value.Str(answer.Value("comment")), Warnings: warningsOf(answer),
		More: moreOf(answer)}
	if answer.Value("result") == false {
		return report, python.Failure(report.Comment)
	}
	return report, nil
}

// moreOf returns the keys of an answer beside those that every state returns.
func moreOf(answer *value.Map) *value.Map {
	more := answer.Clone()
	for _, key := range []string{"name", "changes", "result", "comment", "warnings", "__sls__", "__id__",
		"__run_num__", "start_time", "duration", "__state_ran__", "skip_watch"} {
		more.Delete(key)
	}
	return more
}

func warningsOf(answer *value.Map) (all []string) {
	list, _ := answer.Value("warnings").(*value.List)
	if list == nil {
		return nil
	}
	for _, w := range list.Items {
		all = append(all, value.Str(w))
	}
	return all
}

func (s *ownState) call(ctx context.Context, _ *host.Host, test bool) (*value.Map, error) {
	ctx = context.WithValue(ctx, testKey{}, test)
	low := s.Arguments.Clone()
	question := value.NewMap("name", s.name, "low", low.Plain(), "test", test)
	if s.sfun != "" {
		question.Set("sfun", s.sfun)
	}
	return s.own.answer(ctx, "state", s.name, question)
}

// answer asks the worker for the answer of the state function name.
func (o *ownModules) answer(ctx context.Context, what, name string, question *value.Map) (*value.Map, error) {
	v, err := o.worker.Do(ctx, what, question)
	if err != nil {
		return nil, err
	}
	answer, ok := v.(*value.Map)
	if !ok {
		return nil, fmt.Errorf("%s answered with a %s", name, value.TypeName(v))
	}
	return answer, nil
}

// Valid is part of module.Validated: an unknown argument is an error, as in Salt.
func (s *ownState) Valid() error {
	var known []string
	for _, p := range s.takes {
		if p.Kind == function.Keywords || p.Kind == function.Rest {
			continue
		}
		known = append(known, p.Name)
		if !p.Optional && p.Name != "sfun" && !s.Arguments.Has(p.Name) {
			return diag.Argument.Hint(fmt.Errorf("%s lacks its argument %s", s.name, p.Name),
				"add `- %s: ...` to the declaration", p.Name)
		}
	}
	if slices.ContainsFunc(s.takes, func(p function.Parameter) bool { return p.Kind == function.Keywords }) {
		return nil
	}
	for key := range s.Others.All() {
		if name := value.Str(key); !slices.Contains(known, name) && name != "test" {
			return diag.Argument.Hint(fmt.Errorf("%s has no argument %s", s.name, name), "%s", diag.DidYouMean(name, known))
		}
	}
	return nil
}

// watchedState is a state of a module with a function mod_watch.
type watchedState struct{ ownState }

// Watched is part of module.Watcher.
func (s *watchedState) Watched() module.Resource {
	state, fun, _ := strings.Cut(s.name, ".")
	watched := s.ownState
	watched.name, watched.sfun, watched.takes = state+".mod_watch", fun, nil
	return &watched
}

// calls returns the states cmd.call and cmd.wait_call. Only files in pydsl can declare them, since they take a Python
// function.
func (o *ownModules) calls() module.Table {
	return module.Table{
		"call":      func() module.Resource { return &ownCall{own: o} },
		"wait_call": func() module.Resource { return &waitCall{ownCall{own: o}} },
	}
}

// ownCall calls a function that a file in pydsl defines.
type ownCall struct {
	Name   string     `sls:"name"`
	Func   any        `sls:"func,required"`
	Args   any        `sls:"args"`
	Kws    any        `sls:"kws"`
	Others *value.Map `sls:"*"`
	own    *ownModules
}

// Check is part of module.Resource. The result is unknown, since only a call of the function can tell the changes.
func (c *ownCall) Check(context.Context, *host.Host) (module.Diff, error) {
	return module.Diff{Unknown: true, Comment: "a dry run does not call the function " + c.Name}, nil
}

// Apply is part of module.Resource.
func (c *ownCall) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	const name = "cmd.call"
	if err := h.RecordCommand(ctx, name+" "+c.Name+" (Python)"); err != nil {
		return module.Report{}, err
	}
	question := value.NewMap("name", c.Name, "func", c.Func, "args", value.NewList(), "kws", value.NewMap().Plain())
	for key, v := range map[string]any{"args": c.Args, "kws": c.Kws} {
		if v != nil {
			question.Set(key, v)
		}
	}
	answer, err := c.own.answer(ctx, "invoke", name, question)
	h.Acted(ctx)
	if err != nil {
		return module.Report{}, err
	}
	return reportOf(answer)
}

// Watched is part of module.Watcher.
func (c *ownCall) Watched() module.Resource { return c }

// waitCall is a call that is made only when a state that it watches changes something.
type waitCall struct{ ownCall }

// Check is part of module.Resource.
func (w *waitCall) Check(context.Context, *host.Host) (module.Diff, error) { return module.Diff{}, nil }

// Watched is part of module.Watcher.
func (w *waitCall) Watched() module.Resource { return &w.ownCall }

// registry returns the known state functions.
func (s *Session) registry() module.Registry {
	s.registryMu.Lock()
	defer s.registryMu.Unlock()
	return s.modules
}

// loadStates adds the Python states of the tree that high declares to the registry. A file of the tree replaces all
// functions of the state of its name.
func (s *Session) loadStates(high *compile.High) {
	if !s.own.has("states") || high == nil {
		return
	}
	for id, body := range high.Data.All() {
		m, _ := body.(*value.Map)
		for key, run := range m.All() {
			kind, _ := key.(string)
			list, ok := run.(*value.List)
			if !ok || strings.HasPrefix(kind, "__") {
				continue
			}
			d, _ := declared(value.Str(id), kind, list)
			s.loadState(d.state)
			if s.own.hides("states", d.state) && !s.registry().Has(d.state, d.fun) {
				s.add(d.state, module.Table{d.fun: func() module.Resource {
					return &absentState{why: s.own.why("states", d.function())}
				}})
			}
		}
	}
}

// absentState is a function that does not exist in a module of the tree, or whose module does not exist.
type absentState struct {
	Others *value.Map `sls:"*"`
	why    error
}

// Valid is part of module.Validated.
func (a *absentState) Valid() error { return a.why }

// Check and Apply are part of module.Resource.
func (a *absentState) Check(context.Context, *host.Host) (module.Diff, error) {
	return module.Diff{}, a.why
}

// Apply is never called.
func (a *absentState) Apply(context.Context, *host.Host, module.Diff) (module.Report, error) {
	return module.Report{}, a.why
}

// add adds functions to a state of the registry. It replaces the registry, so that a run that has begun keeps its own.
func (s *Session) add(state string, functions module.Table) {
	s.registryMu.Lock()
	defer s.registryMu.Unlock()
	all := maps.Clone(s.modules)
	table := module.Table{}
	maps.Copy(table, all[state])
	maps.Copy(table, functions)
	all[state] = table
	s.modules = all
}

// everyState returns all state functions, including those of the tree.
func (s *Session) everyState() module.Registry {
	for state := range s.own.every("states") {
		s.loadState(state)
	}
	return s.registry()
}

// loadState adds the functions of a state of the tree to the registry, unless that was done before.
func (s *Session) loadState(state string) {
	s.registryMu.Lock()
	done := s.loaded[state]
	s.registryMu.Unlock()
	if done {
		return
	}
	functions := s.own.module("states", state)
	hides := s.own.hides("states", state)
	if functions == nil && !hides && !s.registry().Watches(state) && len(s.registry()[state]) == 0 {
		functions = s.own.every("states")[state]
	}
	s.registryMu.Lock()
	if s.loaded == nil {
		s.loaded = map[string]bool{}
	}
	s.loaded[state] = true
	if hides {
		s.modules = maps.Clone(s.modules)
		delete(s.modules, state)
	}
	s.registryMu.Unlock()
	table := module.Table{}
	_, watches := functions["mod_watch"]
	for fun, signature := range functions {
		table[fun] = func() module.Resource {
			one := ownState{own: s.own, name: state + "." + fun, takes: signature.parameters}
			if watches {
				return &watchedState{one}
			}
			return &one
		}
	}
	if len(table) > 0 {
		s.add(state, table)
	}
}
