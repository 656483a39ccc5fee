package session

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/value"
)

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
	high, err := c.highOfNames()
	if err != nil {
		return Answer{}, err
	}
	return c.runHigh(high)
}

// highOfNames returns the declarations of the SLS files that the call names.
func (c *caller) highOfNames() (*compile.High, error) {
	names, err := c.names()
	if err != nil {
		return nil, err
	}
	return c.High(c.ctx, c.Named(names...))
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

// clearCache returns the result of Salt for an empty cache. The agent has no cache, since every run reads the SLS
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
		one := r.Map()
		m.Set(r.ShownTag(), one)
		a.Failed = subStates(m, one) || r.Fails() || a.Failed
	}
	a.Value = m
	return a
}

// subStates moves the results that a state of the tree returned in sub_state_run to those of a run, in Salt's form. It
// reports whether one of them failed.
func subStates(all, parent *value.Map) (failed bool) {
	below := parent.Value(exec.KeySubStates)
	parent.Delete(exec.KeySubStates)
	return addSubStates(all, parent, below)
}

// addSubStates adds the results of sub states, and of theirs.
func addSubStates(all, parent *value.Map, below any) (failed bool) {
	list, _ := below.(*value.List)
	if list == nil {
		return false
	}
	for _, item := range list.Items {
		sub, _ := item.(*value.Map)
		low, _ := sub.Value("low").(*value.Map)
		if low == nil {
			continue
		}
		one := subState(sub, parent)
		all.Set(tagOf(low), one)
		failed = addSubStates(all, parent, sub.Value(exec.KeySubStates)) || one.Value("result") == false || failed
	}
	return failed
}

// subState returns the result of a sub-state. It has the name, the ID and the file of its parent.
func subState(sub, parent *value.Map) *value.Map {
	one := parent.Clone()
	for _, field := range []string{"changes", "result", "comment", "start_time", "duration"} {
		if v, ok := sub.Get(field); ok {
			one.Set(field, v)
		}
	}
	one.Set("__state_ran__", true)
	return one
}

// tagOf returns the key of a state in the results of a run.
func tagOf(low *value.Map) string {
	var tag []string
	for _, part := range []string{"state", compile.KeyID, "name", "fun"} {
		tag = append(tag, value.Str(low.Value(part)))
	}
	return strings.Join(tag, "_|-")
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
		return Answer{}, misuse("write state.single STATE.FUNCTION NAME argument=value", "%q is not a state function", fun)
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
