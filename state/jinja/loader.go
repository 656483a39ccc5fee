package jinja

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Loader loads the templates that include, import and extends name.
//
// Each template is loaded once in a Render. Globals looks up the variables that imported templates see, with the
// changes of earlier loads. The Vars of the Source are added to them, which is how an imported template of Salt gets
// its path. An error that is fs.ErrNotExist means that the template does not exist.
type Loader interface {
	Load(ctx context.Context, name string, globals func(name string) any) (Source, error)
}

// Tree is a Loader for the templates of a file tree, with Salt's rules: a name is relative to the top of the tree, or
// if it starts with ./ or ../ to the directory tpldir. Loading a template sets tplfile, tpldir and tpldot to its path.
type Tree struct {
	// Read returns the text of a file, and its name for errors.
	Read func(ctx context.Context, path string) (text, file string, err error)
}

// Load reads a template.
func (t Tree) Load(ctx context.Context, name string, globals func(string) any) (Source, error) {
	first, _, _ := strings.Cut(name, "/")
	relative := first == "." || first == ".."
	full := name
	dir := path.Dir(name)
	if relative {
		base, ok := globals("tpldir").(string)
		if !ok {
			return Source{}, diag.Jinja.Hint(fs.ErrNotExist, "it is not known which directory %s counts from", first)
		}
		dir = base
		full = path.Join(base, name)
	}
	if clean := path.Clean(full); clean == ".." || strings.HasPrefix(clean, "../") || strings.HasPrefix(clean, "/") {
		return Source{}, diag.Jinja.Hint(fs.ErrNotExist, "%s leads out of the tree", name)
	}
	text, file, err := t.Read(ctx, full)
	if err != nil {
		return Source{}, err
	}
	dot := strings.ReplaceAll(dir, "/", ".")
	if dir == "." && !relative {
		dot = ""
	}
	return Source{Name: name, File: file, Text: text, Vars: value.NewMap("tplfile", name, "tpldir", dir, "tpldot", dot)},
		nil
}

// loaded is a template that a run has loaded, and its module if it was imported without context.
type loaded struct {
	template *Template
	module   *module // without context; nil until the first import
}

// load loads the template that a value names. Of a list of names, it takes the first that exists.
func (f *frame) load(name any) (*loaded, error) {
	switch n := name.(type) {
	case string:
		return f.loadName(n)
	case *Undefined:
		return nil, n.err()
	}
	names, err := f.listOf(name)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, raise("TemplatesNotFound", "Tried to select from an empty list of templates")
	}
	var missed []string
	for _, n := range names {
		l, err := f.load(n)
		if err == nil || !isKind(err, "TemplateNotFound", "TemplatesNotFound") {
			return l, err
		}
		missed = append(missed, value.Str(n))
	}
	return nil, raise("TemplatesNotFound", "none of the templates given were found: "+strings.Join(missed, ", "))
}

func (f *frame) loadName(name string) (*loaded, error) {
	if l, ok := f.r.loaded[name]; ok {
		return l, nil
	}
	loader := f.r.env.options.Loader
	if loader == nil {
		return nil, notFound(name, "there is no place to load templates from")
	}
	src, err := loader.Load(f.r.ctx, name, func(n string) any { return f.r.globals[n] })
	if errors.Is(err, fs.ErrNotExist) {
		hint := diag.HintOf(err)
		if hint == "" {
			hint = "there is no file of that name in the tree"
		}
		return nil, notFound(name, hint)
	}
	if err != nil {
		return nil, err
	}
	addNames(f.r.globals, src.Vars)
	addNames(f.r.added, src.Vars)
	t, err := f.r.env.Parse(src)
	if err != nil {
		var e *Error
		if errors.As(err, &e) {
			err = e.again()
		}
		return nil, err
	}
	l := &loaded{template: t}
	f.r.loaded[name] = l
	return l, nil
}

// makeModule runs a template to get its variables.
func (r *run) makeModule(t *Template, given, locals map[string]any) (*module, error) {
	s := newScope(given, locals, t)
	out := &writer{limit: r.limits.OutputBytes}
	if err := t.run(r, s, out); err != nil {
		return nil, err
	}
	return &module{name: t.name, body: string(out.buf), names: s.exports()}, r.charge(len(out.buf))
}

// withoutContext returns the module of a template that sees only the globals. It is created once.
func (l *loaded) withoutContext(r *run) (*module, error) {
	if l.module != nil {
		return l.module, nil
	}
	given := make(map[string]any, len(r.globals))
	for name, v := range r.globals { // later loads must not change the variables of this template
		given[name] = v
	}
	m, err := r.makeModule(l.template, given, nil)
	l.module = m
	return m, err
}

// shared returns the variables that all templates of the Env see.
func (r *run) shared() map[string]any {
	all := maps.Clone(r.env.globals)
	maps.Copy(all, r.added)
	return all
}

// includeStmt is an include statement.
type includeStmt struct {
	template      expr
	withContext   bool
	ignoreMissing bool
	locals        []local
	at            int
	line          int
}

func (s *includeStmt) exec(f *frame) (flow, error) {
	name, err := s.template.eval(f)
	var l *loaded
	if err == nil {
		if l, err = f.load(name); s.ignoreMissing && isKind(err, "TemplateNotFound", "TemplatesNotFound") {
			return flowNext, nil
		}
	}
	if err == nil {
		err = s.include(f, l)
	}
	if err != nil {
		return flowNext, f.onLine(s.line, s.at, f.calledAt(s.at, err))
	}
	return flowNext, nil
}

func (s *includeStmt) include(f *frame, l *loaded) error {
	given, locals := f.scope.all(), f.locals(s.locals)
	if !s.withContext { // unlike an import, it does not see the variables of Render either
		given, locals = f.r.shared(), nil
	}
	return l.template.run(f.r, newScope(given, locals, l.template), f.out)
}

// importStmt is an import ... as statement.
type importStmt struct {
	template    expr
	withContext bool
	locals      []local
	target      place
	export      string // the name if it is a variable of the template itself
	at          int
	line        int
}

func (s *importStmt) exec(f *frame) (flow, error) {
	m, err := f.importModule(s.template, s.withContext, s.locals)
	if err != nil {
		return flowNext, f.onLine(s.line, s.at, f.calledAt(s.at, err))
	}
	*f.at(s.target) = m
	if s.export != "" {
		f.scope.set(s.export, m, false)
	}
	return flowNext, nil
}

func (f *frame) importModule(template expr, withContext bool, locals []local) (*module, error) {
	name, err := template.eval(f)
	if err != nil {
		return nil, err
	}
	l, err := f.load(name)
	if err != nil {
		return nil, err
	}
	if withContext {
		return f.r.makeModule(l.template, f.scope.all(), f.locals(locals))
	}
	return l.withoutContext(f.r)
}

// fromImportStmt is a from ... import statement.
type fromImportStmt struct {
	template    expr
	withContext bool
	locals      []local
	names       []importedName
	at          int
	line        int
}

type importedName struct {
	name   string
	alias  string
	target place
	export bool
}

func (s *fromImportStmt) exec(f *frame) (flow, error) {
	m, err := f.importModule(s.template, s.withContext, s.locals)
	if err != nil {
		return flowNext, f.onLine(s.line, s.at, f.calledAt(s.at, err))
	}
	for _, n := range s.names {
		v, ok := m.names[n.name]
		if !ok {
			u := f.undefinedOf(m, n.name)
			u.message = "the template " + value.Repr(m.name) + " (imported on line " + itoa(s.line) + " in " +
				value.Repr(f.t.name) +
				") does not export the requested name " + value.Repr(n.name)
			v = u
		}
		*f.at(n.target) = v
		if n.export {
			f.scope.set(n.alias, v, false)
		}
	}
	return flowNext, nil
}
