package session

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

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
	Failed bool // a state failed, or the function reported a failure
	Code   int  // the exit code of salt-call --retcode-passthrough
	Own    bool // a function of the tree returned Value, whose mappings are ordered only if Python's are

	// Unrun is the number of states that did not run because an earlier one failed and failhard was set.
	Unrun int
	// Failhard is true if the configuration sets failhard, and not only the state that failed.
	Failhard bool
}

// The return codes of salt-call (salt/defaults/exitcodes.py).
const (
	codeGeneric = 1 // also of files that do not compile
	codeStates  = 2 // a state failed
	codePillar  = 5 // the pillar does not compile
)

// code returns the return code of an answer: that of Salt for this kind of failure, or else that of the last failed
// command.
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

// Call calls a function by name, as users of `salt-call --local` do: state.apply web test=True. The functions are those
// of state, those that templates may call, and those that act, such as service.restart. Problems in SLS files are
// returned as a diag.List.
func (s *Session) Call(ctx context.Context, name string, args []any, kwargs *value.Map, o exec.Observer) (Answer,
	error) {
	own, sure := s, s.CollectErrors()
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

// callFunction calls a function that templates may call, or one that acts on the host, which is allowed here because a
// user requested it. If the pillar does not compile, functions of pillar return the part that compiles, together with
// the problems.
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
	own, _ := s.actions.find(name)
	if own {
		args, kwargs = s.asPublished(name, args, kwargs)
	}
	v, err := s.direct(name).Call(ctx, name, args, kwargs)
	if err == nil && strings.HasPrefix(name, "pillar.") {
		err = broken
	}
	return Answer{Value: v, Code: s.retcode, Own: own}, err
}

// direct returns the table for a function that a user calls. If a shell is the default of commands, it is that of this
// call alone, as under Salt: templates, modules and states that it uses run a program with arguments.
func (s *Session) direct(name string) TreeFunctions {
	if !s.Shell || !strings.HasPrefix(name, "cmd.") {
		return s.actions
	}
	facts := s.facts()
	facts.Shell = true
	return TreeFunctions{s.Tables.Acting(facts), s.own}
}

// ErrNoFunction is wrapped by the error of a call whose function does not exist.
var ErrNoFunction = errors.New("no such function")

type noFunction struct{ error }

func (noFunction) Is(target error) bool { return target == ErrNoFunction }

func (n noFunction) Unwrap() error { return n.error }

// unknown returns the error for a function that does not exist, with a hint that names a similar one.
func (s *Session) unknown(name string, err error) error {
	state, fun, _ := strings.Cut(name, ".")
	if s.registry().Has(state, fun) {
		return noFunction{diag.Function.Hint(fmt.Errorf("%s is a function of states and cannot be called by itself", name),
			"write `corpus-agent call state.single %s NAME ARGUMENT=VALUE`", name)}
	}
	if hint := diag.DidYouMean(name, StateFunctions()); hint != "" && !errors.Is(err, function.ErrNotHere) {
		return noFunction{diag.Function.Hint(fmt.Errorf("there is no function %s", name), "%s", hint)}
	}
	if diag.CauseOf(err) != nil || s.actions.Lost(name) != nil {
		return err // it may exist
	}
	return noFunction{err}
}

// Messages returns the texts of the problems in err, as salt-call lists them, or nil if err is not a list of problems.
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

// Callable returns the names of the functions that Call accepts, sorted.
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
