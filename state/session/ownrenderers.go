package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/python"
	"github.com/corpus-agent/corpus-agent/state/render"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// programRenderers returns the renderers that the worker implements: `py`, and those in its package salt.renderers.
func programRenderers() []string {
	return []string{"py", "mako", "pydsl", "pyobjects", "wempy"}
}

// Renders is part of render.Programs.
func (o *ownModules) Renders(name string) bool {
	return slices.Contains(programRenderers(), name) || o.hides("renderers", name) || o.claimed("renderers", name)
}

// Render is part of render.Programs.
func (o *ownModules) Render(ctx context.Context, c render.Call) (any, error) {
	if err := o.broken; err != nil {
		return nil, err
	}
	vars := value.NewMap().Plain()
	for name, v := range c.Vars.All() {
		if !slices.Contains([]any{"salt", "grains", "pillar", "opts"}, name) { // the worker sets these for every module
			vars.Set(value.Str(name), v)
		}
	}
	question := value.NewMap("name", c.Renderer, "argline", c.Arguments, "env", c.Source.Env, "sls",
		value.Str(c.Vars.Value("sls")), "path", c.Source.File, "data", c.Data, "vars", vars,
		"pillar", o.session.inPillar(ctx))
	what := "render"
	if c.Renderer == "py" && !o.hides("renderers", "py") {
		what = "program"
	}
	v, err := o.worker.Do(ctx, what, question)
	if err != nil {
		return nil, renderError(err, c)
	}
	if what == "program" && v == nil && value.Str(question.Value("sls")) != "" {
		o.session.log("warning", c.Source.File+": run() returned None, so the file declares nothing")
	}
	if c.Renderer == "pydsl" {
		o.session.add("cmd", o.calls())
	}
	return v, nil
}

// renderError returns the error of a renderer, at the line of the file that raised it if that is known.
func renderError(err error, c render.Call) error {
	at := diag.Pos{File: c.Source.File, Line: 1, Col: 1}
	var raised *python.Raised
	if errors.As(err, &raised) {
		at.Line = max(1, lineIn(c.Source.File, raised))
	}
	hint := cmp.Or(diag.HintOf(err), "docs/python.md says what files that are rendered with Python may use")
	return diag.At(at, "renderer %s: %v", c.Renderer, err).WithHint(diag.Python, hint)
}

// lineIn returns the line of a file that an exception names: in its place or, if that does not name the file, in the
// last line of its traceback that does. It returns 0 if there is none.
func lineIn(file string, r *python.Raised) (line int) {
	for _, text := range append(slices.Clone(r.Trace), r.Place) {
		for _, start := range []string{file + ":", fmt.Sprintf("File %q, line ", file)} {
			_, rest, ok := strings.Cut(text, start)
			if !ok {
				continue
			}
			digits := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
			if n, err := strconv.Atoi(digits); err == nil {
				line = n
			}
		}
	}
	return line
}

// renderFor renders a text with the agent's renderers, on request of a renderer in Python.
func (o *ownModules) renderFor(ctx context.Context, q *value.Map) (any, error) {
	s := o.session
	file, sls := value.Str(q.Value("path")), value.Str(q.Value("sls"))
	src := render.Source{Name: file, File: file, Env: value.Str(q.Value("env")), Text: value.Str(q.Value("text"))}
	if name, ok := q.Value("tplfile").(string); ok {
		src.Name = name
	}
	if first, rest, _ := strings.Cut(src.Text, "\n"); strings.HasPrefix(first, "#!") {
		src.Text = "\n" + rest // its first line names the requesting renderer
	}
	vars := s.slsVars(src, sls, s.pillar)
	more, _ := q.Value("vars").(*value.Map)
	vars.Update(more)
	r := *s.renderer
	r.Default = value.Str(q.Value("pipe"))
	if ctx.Value(treeKey{}) == nil {
		ctx = withTree(ctx, s.states)
	}
	doc, err := r.Render(ctx, src, vars)
	if err != nil {
		return nil, err
	}
	return doc.Value, nil
}

// Return passes the result of a call to returners of the tree. names are separated by commas. As under Salt, a returner
// that fails does not change the outcome of the call; the errors say what failed.
func (s *Session) Return(ctx context.Context, names string, result *value.Map) (failed []error) {
	for name := range strings.SplitSeq(names, ",") {
		name = strings.TrimSpace(name)
		if name == "" {
			continue
		}
		var err error
		if s.HasReturner(name) {
			_, err = s.own.call(ctx, "returners", name+".returner", []any{result.Clone().Plain()}, nil)
		} else if err = s.own.why("returners", name+".returner"); err == nil {
			err = diag.Python.Hint(fmt.Errorf("the tree has no returner %s", name), "_returners/%s.py with a "+
				"function returner defines one; notify in agent.yaml reports deploys", name)
		}
		if err != nil {
			failed = append(failed, err)
		}
	}
	return failed
}

// HasReturner reports whether the tree has a returner with a name.
func (s *Session) HasReturner(name string) bool {
	_, ok := s.own.module("returners", name)["returner"]
	return ok
}

// HasOutputter reports whether the tree has an outputter with a name.
func (s *Session) HasOutputter(name string) bool {
	_, ok := s.own.module("outputters", name)["output"]
	return ok
}

// OutputOf returns the format that the module of a function of the tree names for it in __outputter__, or "" for none.
func (s *Session) OutputOf(function string) string {
	module, fun, _ := strings.Cut(function, ".")
	return s.own.module("modules", module)[fun].output
}

// Formatted returns data as an outputter of the tree formats it.
func (s *Session) Formatted(ctx context.Context, name string, data any) (string, error) {
	v, err := s.own.call(ctx, "outputters", name+".output", []any{plainly(data)}, nil)
	return value.Str(v), err
}
