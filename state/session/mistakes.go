package session

import (
	"context"
	"errors"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/jinja"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/render"
	"github.com/corpus-agent/corpus-agent/state/sls"
	"github.com/corpus-agent/corpus-agent/state/top"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// together returns the problems of several errors in one list. If err is an error of the machine, it is returned
// alone, since the other problems may be its consequences.
func together(err error, more ...error) error {
	var list diag.List
	var one *diag.Diagnostic
	if diag.CauseOf(err) != nil || !errors.As(err, &list) && !errors.As(err, &one) {
		return err
	}
	var all diag.List
	all.AddError(diag.Pos{}, err)
	for _, m := range more {
		if m == nil || diag.CauseOf(m) == nil {
			all.AddError(diag.Pos{}, m)
		}
	}
	return all.Err()
}

// besidePillar adds to the problems of a pillar those problems of SLS files that do not depend on the pillar:
// syntax errors of Jinja and YAML, missing files and unknown functions. No template is rendered with an incomplete
// pillar, since templates may act.
func (s *Session) besidePillar(ctx context.Context, err error, matches []top.Match, named bool) error {
	var broken *PillarError
	if !errors.As(err, &broken) || s.compiling {
		return err
	}
	var more error
	if !named {
		matches, more = s.topLoader(value.NewMap(), s.readPlain).States(ctx)
	}
	loader := &sls.Loader{Tree: s.states, Render: s.readPlain}
	high, inFiles := loader.High(ctx, matches)
	high.Unread = append(high.Unread, "") // the contents of files with Jinja are not known
	return &PillarError{Problems: s.shown(together(broken.Problems, more, inFiles, s.undeclarable(high)))}
}

// readPlain reads a file without Jinja. A file with Jinja is only parsed, for syntax errors.
func (s *Session) readPlain(ctx context.Context, src render.Source, name string) (*render.Document, error) {
	jinjaless := !strings.Contains(src.Text, "{{") && !strings.Contains(src.Text, "{%") &&
		!strings.Contains(src.Text, "{#")
	if jinjaless && !strings.HasPrefix(src.Text, "#!") {
		return s.renderIn(ctx, s.states, src, value.NewMap())
	}
	if !jinjaless {
		env := s.templates.env(envKey{tree: s.states, env: src.Env, sls: name != ""})
		if _, err := env.Parse(jinja.Source{Name: src.Name, File: src.File, Text: src.Text}); err != nil {
			return nil, err
		}
	}
	src.Text = "{}"
	return s.renderer.Render(ctx, src, value.NewMap())
}

// undeclarable returns the problems of the files that could be read, if other files could not: functions that do not
// exist, unusable arguments, and requisites without a target.
func (s *Session) undeclarable(high *compile.High) error {
	if high == nil {
		return nil
	}
	s.loadStates(high)
	var problems diag.List
	for id, body := range high.Data.All() {
		m, _ := body.(*value.Map)
		for state, run := range m.All() {
			list, ok := run.(*value.List)
			kind, _ := state.(string)
			if !ok || strings.HasPrefix(kind, "__") {
				continue
			}
			if d, ok := declared(value.Str(id), kind, list); ok {
				problems = append(problems, s.wrongIn(d, high)...)
			}
		}
	}
	return append(problems, compile.Unmet(high)...).Err()
}

// wrongIn returns the problems of a declaration that no other file can correct.
func (s *Session) wrongIn(d declaration, high *compile.High) (problems diag.List) {
	resource, ok := s.registry().New(d.state, d.fun)
	if !ok {
		why := compile.UnknownFunction(d.state, d.fun, vocabulary{s.registry(), s.own})
		problems.Add(high.Pos(d.id, d.state), "%s of %s: %v", d.function(), d.id, why).
			WithHint(diag.Argument, diag.HintOf(why))
		return problems
	}
	call := module.Call{Function: d.function(), Arguments: d.arguments, At: func(argument string) diag.Pos {
		if argument == "" { // a missing argument, which another file may add
			return diag.Pos{}
		}
		return high.Pos(d.id, d.state, argument)
	}}
	_, wrong := s.decoder.Decode(resource, call)
	if s.Strict {
		wrong = append(wrong, s.decoder.Misspelled(resource, call)...)
	}
	for _, p := range wrong {
		if p.Pos.IsZero() {
			continue
		}
		if p.Hint == "" {
			p.Hint = diag.Argument.Coded(correctArgument(d.function()))
		}
		problems = append(problems, p)
	}
	return problems
}

// correctArgument returns the hint for an argument that a function cannot use.
func correctArgument(function string) string {
	return "correct the argument or remove it; docs/states.md describes those of " + function
}

// declaration is the declaration of a state in a file.
type declaration struct {
	id, state, fun string
	arguments      *value.Map
}

func (d declaration) function() string { return d.state + "." + d.fun }

// declared parses a declaration; ok is false if it is malformed.
func declared(id, state string, list *value.List) (d declaration, ok bool) {
	d = declaration{id: id, state: state, arguments: value.NewMap("name", id)}
	functions := 0
	if before, after, found := strings.Cut(state, "."); found {
		d.state, d.fun, functions = before, after, 1
	}
	for _, item := range list.Items {
		switch item := item.(type) {
		case string:
			d.fun = item
			functions++
		case *value.Map:
			d.arguments.Update(item)
		}
	}
	return d, functions == 1 && !strings.ContainsAny(d.fun, " .")
}
