package state

import (
	"context"

	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Template is a configuration file that a release contains as a template. It becomes a file.managed state after those
// of the SLS files, which may require and watch it by its target.
type Template struct {
	Source string // path on the host
	Target string
	User   string
	Group  string
	Mode   string // octal; 0644 by default
	Check  string // a command that checks the rendered file and fails for an invalid one; "" for none

	Pos diag.Pos // where it is declared
}

// templateSLS is the SLS name of templates in results; no SLS file can have it.
const templateSLS = "corpus.yaml"

func (t Template) id() string { return "template " + t.Target }

// state returns the template as the body of an ID.
func (t Template) state() *value.Map {
	mode := t.Mode
	if mode == "" {
		mode = "0644"
	}
	list := value.NewList("managed")
	add := func(key string, v any) { list.Append(value.NewMap(key, v)) }
	add("name", t.Target)
	add("source", t.Source)
	add("template", "jinja")
	add("mode", mode)
	add("makedirs", true)
	for _, given := range [][2]string{{"user", t.User}, {"group", t.Group}, {"check_cmd", t.Check}} {
		if given[1] != "" {
			add(given[0], given[1])
		}
	}
	return value.NewMap("file", list, compile.KeySLS, templateSLS, compile.KeyEnv, "base")
}

// declare adds templates to the declarations of SLS files.
func declare(high *compile.High, templates []Template) error {
	var problems diag.List
	places := map[string]diag.Pos{}
	for _, t := range templates {
		id := t.id()
		if _, taken := high.Data.Get(id); taken {
			problems.Add(t.Pos, "%s is the target of two templates", t.Target).WithHint(diag.SLS, "keep one of them")
			continue
		}
		high.Data.Set(id, t.state())
		places[id] = t.Pos
	}
	high.Pos = declaredAt(places, high.Pos)
	return problems.Err()
}

// declaredAt returns a function that returns the position of an ID: the one in places, or else the one that other
// returns.
func declaredAt(places map[string]diag.Pos, other func(...string) diag.Pos) func(...string) diag.Pos {
	return func(path ...string) diag.Pos {
		if pos, ok := places[path[0]]; ok {
			return pos
		}
		if other == nil {
			return diag.Pos{}
		}
		return other(path...)
	}
}

// native compiles the SLS files of the request's top file, and the templates of the request.
func native(ctx context.Context, s *session.Session) (p Program, err error) {
	sure := s.CollectErrors()
	defer func() {
		if err = sure(err); err != nil {
			attribute(s.Host, err)
			s.Close()
		}
	}()
	high, _, err := s.Highstate(ctx)
	if err != nil {
		return nil, err
	}
	return compiled(s, high)
}

func compiled(s *session.Session, high *compile.High) (Program, error) {
	p, err := s.Compile(high)
	if err != nil {
		s.Close()
		return nil, err
	}
	return &nativeProgram{session: s, program: p}, nil
}

// WithTemplates returns an engine that runs e, which does not support templates, and then renders the templates of the
// request with the native engine.
func WithTemplates(e Engine) Engine {
	if _, is := e.(Native); is {
		return e
	}
	return templating{e}
}

type templating struct{ Engine }

// Compile compiles the request with both engines.
func (e templating) Compile(ctx context.Context, r Request) (Program, error) {
	first, err := e.Engine.Compile(ctx, r)
	if err != nil || len(r.Templates) == 0 {
		return first, err
	}
	high := &compile.High{Data: value.NewMap()}
	if err := declare(high, r.Templates); err != nil {
		return nil, err
	}
	then, err := compiled(SessionFor(r), high)
	if err != nil {
		return nil, err
	}
	return both{first, then}, nil
}

// both runs two programs in succession.
type both struct{ first, then Program }

// Apply runs the second program if the first one did not fail.
func (b both) Apply(ctx context.Context, o exec.Observer) (Outcome, error) {
	outcome, err := b.first.Apply(ctx, o)
	if err != nil {
		return outcome, err
	}
	more, err := b.then.Apply(ctx, o)
	outcome.Results = append(outcome.Results, more.Results...)
	return outcome, err
}
