// Package jinja renders Jinja2 templates as Salt does.
//
// SLS files use Jinja2 3.1 with Python's values, so the package implements the same scoping of variables, the same
// truth of values, and the same lines in errors. A template is parsed into a tree (package syntax), its variables are
// assigned to slots once (symbols.go), and the result is run as often as needed. An Env holds the filters, tests and
// variables that templates share, caches every parsed template, and may be used by several goroutines at once.
//
// Undefined variables are strict: every use except in a test or a default is an error. Every error has a position in
// the template and the message of Jinja2.
//
// A template never touches the host. It uses the variables, filters, tests and callables of its Env; those of Salt that
// need no host are in package salt below. Its time and memory are limited: see Limits.
package jinja

import (
	"context"
	"maps"
	"sync"

	"github.com/corpus-agent/corpus-agent/state/jinja/syntax"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Options configure an Env and the variables, filters and tests of its templates. The zero Options give plain, strict
// Jinja2.
type Options struct {
	Loader       Loader            // loads the templates that others name; nil loads none
	Globals      *value.Map        // variables of all templates
	Filters      map[string]Filter // in addition to Jinja2's, or instead of them
	Tests        map[string]Test   // likewise
	Lenient      bool              // an undefined variable prints as nothing and is false
	TrimBlocks   bool              // drop the line break after a statement
	LstripBlocks bool              // drop the white space before a statement that starts a line
	Limits       Limits
}

// Env renders templates.
type Env struct {
	options Options
	filters map[string]Filter
	tests   map[string]Test
	globals map[string]any
	methods *methods

	mu        sync.Mutex
	templates map[Source]*parsed
}

// parsed is a parsed template, or the error of parsing it.
type parsed struct {
	once     sync.Once
	template *Template
	err      error
}

// New returns an Env.
func New(o Options) *Env {
	e := &Env{
		options: o, filters: builtinFilters(), tests: builtinTests(), methods: newMethods(), templates: map[Source]*parsed{},
	}
	for name, f := range o.Filters {
		e.filters[name] = f
	}
	for name, t := range o.Tests {
		e.tests[name] = t
	}
	e.globals = builtinGlobals()
	addNames(e.globals, o.Globals)
	return e
}

// addNames sets every key that is a string.
func addNames(names map[string]any, from *value.Map) {
	for k, v := range from.All() {
		if name, ok := k.(string); ok {
			names[name] = v
		}
	}
}

// Source is the text of a template.
type Source struct {
	Name string     // its name in other templates
	File string     // file in positions of errors
	Text string     // content of the file
	Vars *value.Map // set for all templates after this one was loaded; see Loader
}

// Parse parses a template, or returns a cached one. The error is an *Error.
func (e *Env) Parse(src Source) (*Template, error) {
	src.Vars = nil
	e.mu.Lock()
	p, ok := e.templates[src]
	if !ok {
		p = &parsed{}
		e.templates[src] = p
	}
	e.mu.Unlock()
	p.once.Do(func() { p.template, p.err = e.parse(src) })
	return p.template, p.err
}

func (e *Env) parse(src Source) (*Template, error) {
	t := &Template{env: e, name: src.Name, file: src.File}
	t.endsLine = len(src.Text) > 0 && src.Text[len(src.Text)-1] == '\n'
	tree, err := syntax.Parse(src.Text, syntax.Options{TrimBlocks: e.options.TrimBlocks,
		LstripBlocks: e.options.LstripBlocks})
	if err != nil {
		t.text = syntax.Normalize(src.Text)
		return nil, t.syntaxError(err)
	}
	t.text = tree.Text
	if err := compileTemplate(t, tree); err != nil {
		return nil, t.syntaxError(err)
	}
	return t, nil
}

// Template is a parsed template. It never changes.
type Template struct {
	env      *Env
	name     string
	file     string
	text     string // normalized
	endsLine bool   // the text ended with a line break, which the output also gets
	root     *function
	blocks   map[string]*function
	lines    lines
}

// Render runs the template. Vars are its variables; as in Salt, templates that are imported without context see them
// too. The text ends with a line break if the template did. The error is an *Error.
func (t *Template) Render(ctx context.Context, vars *value.Map) (*Output, error) {
	r := newRun(ctx, t.env)
	addNames(r.globals, vars)
	out := &writer{limit: r.limits.OutputBytes, spans: []span{}}
	err := t.run(r, newScope(maps.Clone(r.globals), nil, t), out) // without the additions of later loads
	if err != nil {
		return nil, r.finish(err)
	}
	if t.endsLine {
		out.buf = append(out.buf, '\n')
	}
	return &Output{Text: string(out.buf), spans: out.spans}, nil
}
