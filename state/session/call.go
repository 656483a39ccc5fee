package session

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/redact"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Answer is the result of a function that was called by name.
type Answer struct {
	Value  any
	States bool // Value holds the results of states, by tag
	Failed bool // a state failed, or the answer is negative
	Code   int  // the exit code of salt-call --retcode-passthrough

	// Unrun is the number of states that did not run because an earlier one failed and failhard was set.
	Unrun int
	// Failhard reports that the configuration set failhard, and not only the state that failed.
	Failhard bool
}

// The return codes of salt-call (salt/defaults/exitcodes.py).
const (
	codeGeneric = 1 // also of files that do not compile
	codeStates  = 2 // a state failed
	codePillar  = 5 // the pillar does not compile
)

// code returns the return code of an answer: the one of a command that ran, or else the code that Salt has for this
// kind of failure.
func (a Answer) code(err error) int {
	var broken *PillarError
	switch {
	case errors.As(err, &broken):
		return codePillar
	case err != nil:
		return codeGeneric
	case a.States && a.Failed:
		return codeStates
	case a.Code == 0 && !succeeded(a.Value):
		return codeGeneric
	}
	return a.Code
}

// succeeded reports whether an answer counts as a success: it is not a mapping in which result or success is false.
func succeeded(answer any) bool {
	m, ok := answer.(*value.Map)
	if !ok {
		return true
	}
	for _, key := range []string{"result", "success"} {
		if v, ok := m.Get(key); ok && !value.Truth(v) {
			return false
		}
	}
	return true
}

// Call calls a function by name, as users of `salt-call --local` do: state.apply web test=True. It knows the
// functions of state, every function that templates may call, and functions that act, such as service.restart.
// Problems in SLS files are returned as a diag.List.
func (s *Session) Call(ctx context.Context, name string, args []any, kwargs *value.Map, o exec.Observer) (Answer,
	error) {
	own, sure := s, s.Doubt()
	answer, err := Answer{}, error(nil)
	if run, ok := stateFunctions()[name]; ok {
		if err := knownArguments(name, kwargs); err != nil {
			return Answer{}, err
		}
		if own, err = s.with(kwargs); err != nil {
			return Answer{}, err
		}
		defer own.Close()
		answer, err = run(&caller{Session: own, ctx: ctx, args: args, kwargs: kwargs, observer: o})
	} else {
		answer, err = s.callFunction(ctx, name, args, kwargs)
	}
	if !answer.States { // errors of states are in their results
		err = sure(err)
	}
	var broken *PillarError
	if err != nil && !errors.As(err, &broken) {
		answer = Answer{}
	}
	answer.Code = answer.code(err)
	answer.Value = own.Redactor.Value(answer.Value)
	redact.Each(&answer.Value, redact.URLs)
	return answer, own.redactError(own.shown(err))
}

// callFunction calls a function that templates may call, or one that acts on the host, which is allowed here
// because a user asked for it. If the pillar does not compile, functions of pillar return the part that does,
// together with the problems.
func (s *Session) callFunction(ctx context.Context, name string, args []any, kwargs *value.Map) (Answer, error) {
	if !s.actions.Has(name) {
		_, err := s.actions.Call(ctx, name, args, kwargs)
		return Answer{}, s.unknown(name, err)
	}
	var broken error
	if !strings.HasPrefix(name, "test.") {
		_, broken = s.Pillar(ctx)
	}
	if broken != nil {
		s.partial = true
		s.pillar = withErrors(s.pillar, broken)
	}
	if err := s.misspelled(name, kwargs); err != nil {
		return Answer{}, err
	}
	s.retcode = 0
	v, err := s.actions.Call(ctx, name, args, kwargs)
	if err == nil && strings.HasPrefix(name, "pillar.") {
		err = broken
	}
	return Answer{Value: v, Code: s.retcode}, err
}

// ErrNoFunction is wrapped by the error of a call whose function does not exist.
var ErrNoFunction = errors.New("no such function")

type noFunction struct{ error }

func (noFunction) Is(target error) bool { return target == ErrNoFunction }
func (n noFunction) Unwrap() error      { return n.error }

// unknown returns the error for a function that does not exist, with a hint that names a similar one.
func (s *Session) unknown(name string, err error) error {
	state, fun, _ := strings.Cut(name, ".")
	if s.registry().Has(state, fun) {
		return noFunction{diag.WithHint(fmt.Errorf("%s is a function of states and cannot be called by itself", name),
			"write `corpus-agent call state.single %s NAME ARGUMENT=VALUE`", name)}
	}
	if hint := diag.DidYouMean(name, StateFunctions()); hint != "" && !errors.Is(err, function.ErrNotHere) {
		return noFunction{diag.WithHint(fmt.Errorf("there is no function %s", name), "%s", hint)}
	}
	return noFunction{err}
}

// Messages returns the problems in users' files as salt-call lists them, one text each, or nil if err is not a list
// of problems.
func Messages(err error) *value.List {
	var list diag.List
	var one *diag.Diagnostic
	if errors.As(err, &one) && !errors.As(err, &list) {
		list = diag.List{one}
	}
	if !errors.As(err, &list) && one == nil {
		return nil
	}
	messages := value.NewList()
	for _, d := range list {
		messages.Append(d.Text())
	}
	return messages
}

// Callable returns the names of the functions that Call knows, sorted.
func (s *Session) Callable() []string {
	names := append(s.actions.Names(), StateFunctions()...)
	slices.Sort(names)
	return names
}

// ReadsStates reports whether the function with this name reads SLS files.
func ReadsStates(name string) bool {
	switch name {
	case "state.single", "state.running", "state.clear_cache":
		return false
	}
	return stateFunctions()[name] != nil
}

// StateFunctions returns the names of the functions of state, sorted.
func StateFunctions() []string { return slices.Sorted(maps.Keys(stateFunctions())) }

// Results reports whether the function with this name returns results of states.
func Results(name string) bool {
	return runsStates(name) && name != "state.low" || name == "state.test"
}

// Changes reports whether the function with this name changes the host unless it is called as a dry run.
func Changes(name string) bool { return runsStates(name) || function.Acts(name) }

func runsStates(name string) bool {
	switch name {
	case "state.apply", "state.highstate", "state.sls", "state.sls_id", "state.single", "state.template",
		"state.template_str",
		"state.high", "state.low":
		return true
	}
	return false
}

// caller is one call of a function of the state module.
type caller struct {
	*Session
	ctx      context.Context
	args     []any
	kwargs   *value.Map
	observer exec.Observer
}

func stateFunctions() map[string]func(*caller) (Answer, error) {
	return map[string]func(*caller) (Answer, error){
		"state.apply":          (*caller).apply,
		"state.highstate":      (*caller).highstate,
		"state.sls":            (*caller).sls,
		"state.test":           (*caller).dry,
		"state.sls_id":         (*caller).slsID,
		"state.single":         (*caller).single,
		"state.template":       (*caller).template,
		"state.template_str":   (*caller).templateStr,
		"state.high":           (*caller).high,
		"state.low":            (*caller).low,
		"state.show_sls":       (*caller).showSLS,
		"state.show_low_sls":   (*caller).showLowSLS,
		"state.show_lowstate":  (*caller).showLowstate,
		"state.show_highstate": (*caller).showHighstate,
		"state.show_top":       (*caller).showTop,
		"state.show_states":    (*caller).showStates,
		"state.sls_exists":     (*caller).slsExists,
		"state.id_exists":      (*caller).idExists,
		"state.running":        (*caller).running,
		"state.clear_cache":    (*caller).clearCache,
	}
}

// with returns a session like s whose settings are overridden by the keyword arguments of a call.
func (s *Session) with(kwargs *value.Map) (*Session, error) {
	settings := s.Settings
	settings.Options = s.Options.Clone()
	for _, name := range []string{"saltenv", "pillarenv"} {
		if v, ok := kwargs.Get(name); ok {
			settings.Options.Set(name, v)
		}
	}
	if v, ok := kwargs.Get("test"); ok {
		settings.Test = value.Truth(v)
	}
	if v, ok := kwargs.Get("failhard"); ok {
		settings.Failhard = value.Truth(v)
	}
	if v, ok := kwargs.Get("pillar"); ok && v != nil {
		m, err := asMapping("pillar", v)
		if err != nil {
			return nil, err
		}
		settings.Override = settings.Override.Clone()
		settings.Override.Update(m)
	}
	return New(settings), nil
}

// names returns the SLS names of the arguments: one argument or several, each with names separated by commas.
func (c *caller) names() ([]string, error) {
	args := c.args
	if v, ok := c.kwargs.Get("mods"); ok && len(args) == 0 {
		args = []any{v}
	}
	var names []string
	for _, arg := range args {
		if list, ok := arg.(*value.List); ok {
			for _, item := range list.Items {
				names = append(names, value.Str(item))
			}
			continue
		}
		for name := range strings.SplitSeq(value.Str(arg), ",") {
			if name = strings.TrimSpace(name); name != "" {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return nil, misuse("write the names of SLS files after the function", "no SLS was named")
	}
	return names, nil
}

func (c *caller) apply() (Answer, error) {
	if len(c.args) == 0 && !c.kwargs.Has("mods") {
		return c.highstate()
	}
	return c.sls()
}

func (c *caller) dry() (Answer, error) {
	c.Session.Test = true
	return c.apply()
}

// highstate runs the states that the top file assigns to the host.
func (c *caller) highstate() (Answer, error) {
	high, matches, err := c.Highstate(c.ctx)
	if err != nil {
		return Answer{}, err
	}
	if len(matches) == 0 && high.Data.Len() == 0 {
		return noStates(), nil
	}
	return c.runHigh(high)
}

// noStates returns the answer for a host to which no top file assigns states.
func noStates() Answer {
	result := value.NewMap("result", false, "comment", "no top file has states for this host", "name", "No States",
		"changes", value.NewMap(), "__run_num__", 0)
	return Answer{Value: value.NewMap("no_|-states_|-states_|-None", result), States: true, Failed: true}
}

func (c *caller) sls() (Answer, error) {
	names, err := c.names()
	if err != nil {
		return Answer{}, err
	}
	high, err := c.High(c.ctx, c.Named(names...))
	if err != nil {
		return Answer{}, err
	}
	return c.runHigh(high)
}

func (c *caller) runHigh(high *compile.High) (Answer, error) {
	c.exclude(high)
	p, err := c.Compile(high)
	if err != nil {
		return Answer{}, err
	}
	if len(p.Steps) == 0 {
		return Answer{Value: value.NewMap(), States: true, Failed: true}, nil // the files declare nothing
	}
	answer := results(c.Run(c.ctx, p, c.observer))
	if answer.Failed && c.ctx.Err() == nil {
		answer.Unrun, answer.Failhard = unrun(p, answer), c.Failhard
	}
	return answer, nil
}

// unrun returns the number of steps of a program that have no result.
func unrun(p *compile.Program, answer Answer) int {
	results, _ := answer.Value.(*value.Map)
	return max(0, len(p.Steps)-results.Len())
}

// running returns the runs that are changing the host, in the form in which Salt lists its jobs.
func (c *caller) running() (Answer, error) {
	runs := value.NewList()
	if c.Running != nil {
		for _, text := range c.Running() {
			runs.Append(text)
		}
	}
	return Answer{Value: runs}, nil
}

// clearCache returns what Salt returns for an empty cache: there is no cache here, since every run reads the SLS
// files.
func (c *caller) clearCache() (Answer, error) { return Answer{Value: value.NewList()}, nil }

// exclude adds the exclude argument of a call to the declarations.
func (c *caller) exclude(high *compile.High) {
	v, ok := c.kwargs.Get("exclude")
	if !ok {
		return
	}
	more, ok := v.(*value.List)
	if text, isText := v.(string); isText {
		more, ok = value.Strings(strings.Split(text, ",")...), true
	}
	if !ok {
		return
	}
	list, _ := high.Data.Value(compile.KeyExclude).(*value.List)
	if list == nil {
		list = value.NewList()
		high.Data.Set(compile.KeyExclude, list)
	}
	list.Items = append(list.Items, more.Items...)
}

func results(all *exec.Results) Answer {
	a := Answer{States: true}
	m := value.NewMap()
	for _, r := range all.All() {
		m.Set(r.ShownTag(), r.Map())
		a.Failed = a.Failed || r.Fails()
	}
	a.Value = m
	return a
}

// slsID runs one ID of SLS files, with the steps that it requires.
func (c *caller) slsID() (Answer, error) {
	if len(c.args) < 2 {
		return Answer{}, misuse("write state.sls_id ID SLS", "state.sls_id takes an ID and SLS names")
	}
	id := value.Str(c.args[0])
	c.args = c.args[1:]
	names, err := c.names()
	if err != nil {
		return Answer{}, err
	}
	p, err := c.Program(c.ctx, c.Named(names...))
	if err != nil {
		return Answer{}, err
	}
	var ids []string
	for _, s := range p.Steps {
		ids = append(ids, s.ID())
	}
	if !slices.Contains(ids, id) {
		hint := diag.DidYouMean(id, ids)
		if hint == "" {
			hint = fmt.Sprintf("`corpus-agent call state.show_low_sls %s` lists the IDs", strings.Join(names, ","))
		}
		return Answer{}, misuse(hint, "there is no ID %q in %s", id, strings.Join(names, ", "))
	}
	return results(c.runner(c.observer).RunID(c.ctx, p, id)), nil
}

// single runs one state function: state.single file.managed /x contents=y.
func (c *caller) single() (Answer, error) {
	args := slices.Clone(c.args)
	take := func(key string) (string, bool) {
		if v, ok := c.kwargs.Get(key); ok {
			return value.Str(v), true
		}
		if len(args) == 0 {
			return "", false
		}
		v := value.Str(args[0])
		args = args[1:]
		return v, true
	}
	fun, ok := take("fun")
	state, function, dotted := strings.Cut(fun, ".")
	if !ok || !dotted {
		return Answer{}, misuse("write state.single STATE.FUNCTION NAME argument=value", "%q is no state function", fun)
	}
	name, ok := take("name")
	if !ok {
		return Answer{}, misuse("write state.single STATE.FUNCTION NAME argument=value", "state.single takes a name")
	}
	list := value.NewList(function, value.NewMap("name", name))
	for key, v := range c.kwargs.All() {
		switch key {
		case "fun", "name", "test", "pillar", "saltenv", "pillarenv":
		default:
			list.Append(value.NewMap(value.Str(key), v))
		}
	}
	high := &compile.High{Data: value.NewMap(name, value.NewMap(state, list, compile.KeySLS, nil, compile.KeyEnv, "base"))}
	p, err := c.Compile(high)
	if err == nil {
		err = c.misspelledOfState(p, c.kwargs)
	}
	if err != nil {
		return Answer{}, err
	}
	return results(c.Run(c.ctx, p, c.observer)), nil
}
