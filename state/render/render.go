// Package render converts a file into data with the renderers that its first line names.
//
// The default is jinja|yaml; a first line such as #!yaml|gpg selects other renderers. Text renderers come first, one
// renderer converts the text to data, and the remaining ones work on the data. Errors are reported at their position
// in the original file, even if they were found in the text that Jinja produced; the lines around the position are
// those of that text.
package render

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
	"github.com/corpus-agent/corpus-agent/state/yaml"
)

// Source is a file to render.
type Source struct {
	Name string // path in its tree, such as web/init.sls, as in imports of templates
	File string // path on the host, for messages
	Env  string
	Text string
}

// Text is the output of a template, and the origin of each position in it.
type Text struct {
	Text   string
	Origin func(line, col int) diag.Pos
}

// Templates renders Jinja.
type Templates interface {
	Render(ctx context.Context, src Source, vars *value.Map) (Text, error)
}

// Decrypter decrypts one value; ok is false for a value that is not encrypted for it.
type Decrypter interface {
	Decrypt(ctx context.Context, text string) (plain string, ok bool, err error)
}

// Noticer is a Decrypter that receives each decrypted value with its key and position.
type Noticer interface {
	Decrypted(plain, key string, at diag.Pos)
}

// Names returns the renderers that need nothing of a tree, by the names that files use.
func Names() []string {
	return []string{"age", "gpg", "jinja", "json", "mako", "py", "pydsl", "pyobjects", "stateconf", "text", "wempy",
		"yaml"}
}

// Programs renders files with Python: files that are programs, and renderers of a tree.
type Programs interface {
	// Renders reports whether there is a renderer with a name. One of a tree replaces one of this package.
	Renders(name string) bool
	// Render passes data, or a text, through a renderer, and returns data or a text.
	Render(ctx context.Context, c Call) (any, error)
}

// Call holds the arguments of a renderer of Programs.
type Call struct {
	Renderer, Arguments string // the name, and the rest of its part of the shebang
	Source              Source
	Data                any // output of the previous renderer; the file's text for the first
	Vars                *value.Map
}

// Renderer renders files.
type Renderer struct {
	Templates  Templates
	Programs   Programs             // nil for none
	Decrypters map[string]Decrypter // by the renderer's name: gpg, age
	Default    string               // pipe of files without a shebang; "jinja|yaml" when empty

	*Configurations // nil if no file may be rendered with stateconf
}

// Document is a rendered file.
type Document struct {
	Value any
	file  string
	yaml  *yaml.Document
	at    func(line, col int) diag.Pos
	named map[string]string // keys of the file, by the names that a renderer gave them
}

// rename records that a key of the document had another name in the file.
func (d *Document) rename(key, written string) {
	if d.named == nil {
		d.named = map[string]string{}
	}
	d.named[key] = written
}

// Pos returns the place of a key in a mapping, or an item in a list, of the document.
func (d *Document) Pos(container, key any) diag.Pos {
	if d.yaml == nil {
		return diag.Pos{File: d.file}
	}
	if name, ok := key.(string); ok {
		key = cmp.Or(d.named[name], name)
	}
	return d.origin(d.yaml.Pos(container, key))
}

// Start returns the place at which the document begins.
func (d *Document) Start() diag.Pos {
	if d.yaml == nil {
		return diag.Pos{File: d.file, Line: 1, Col: 1}
	}
	return d.origin(d.yaml.Start())
}

func (d *Document) origin(p diag.Pos) diag.Pos {
	if d.at == nil || p.Line == 0 {
		return p
	}
	return d.at(p.Line, p.Col)
}

// state is a file in the pipe of renderers.
type state struct {
	src  Source
	vars *value.Map
	text string
	data bool // the text was converted to data
	doc  *Document

	sealed string    // the text before its decryption
	with   Decrypter // the one that decrypted it; nil for none
}

// notice reports the values of a text that was decrypted before its conversion to data. The whole text is secret, and
// so are its values, except those that the encrypted text shows.
func (s *state) notice(v, container, key any) {
	n, is := s.with.(Noticer)
	if !is {
		return
	}
	switch v := v.(type) {
	case nil, bool:
	case *value.Map:
		for k, item := range v.All() {
			s.notice(item, v, k)
		}
	case *value.List:
		for i, item := range v.Items {
			s.notice(item, v, i)
		}
	default:
		if text := value.Str(v); !strings.Contains(s.sealed, text) {
			n.Decrypted(text, value.Str(key), s.doc.Pos(container, key))
		}
	}
}

// Render renders a file. A file with only white space is an empty document.
func (r *Renderer) Render(ctx context.Context, src Source, vars *value.Map) (*Document, error) {
	if strings.TrimSpace(src.Text) == "" {
		return &Document{file: src.File}, nil
	}
	pipe, err := r.pipe(src)
	if err != nil {
		return nil, err
	}
	s := &state{src: src, vars: vars, text: src.Text, doc: &Document{file: src.File}}
	for _, stage := range pipe {
		if err := r.stage(ctx, s, stage); err != nil {
			return nil, err
		}
	}
	if !s.data {
		s.doc.Value = s.text
	}
	if s.with != nil {
		s.notice(s.doc.Value, nil, "the file")
	}
	return s.doc, nil
}

// Text passes a text through the text renderer that a template file names.
func (r *Renderer) Text(ctx context.Context, engine string, src Source, vars *value.Map) (string, error) {
	if engine == "text" {
		return src.Text, nil
	}
	if r.Programs != nil && r.Programs.Renders(engine) {
		made, err := r.Programs.Render(ctx, Call{Renderer: engine, Source: src, Data: src.Text, Vars: vars})
		text, ok := made.(string)
		if err == nil && !ok {
			err = diag.At(diag.Pos{File: src.File}, "%s makes a %s of the template, and a text was expected", engine,
				value.TypeName(made))
		}
		return text, err
	}
	if engine != "jinja" {
		return "", diag.Engine.Hint(fmt.Errorf("there is no template engine %q here", engine),
			"write `template: jinja`, or converge this host with `engine: salt-call`")
	}
	out, err := r.Templates.Render(ctx, src, vars)
	return out.Text, err
}

// part is one renderer of a pipe.
type part struct{ name, arguments string }

// pipe parses the shebang.
func (r *Renderer) pipe(src Source) ([]part, error) {
	text := r.Default
	if text == "" {
		text = "jinja|yaml"
	}
	line, _, _ := strings.Cut(src.Text, "\n")
	if shebang, ok := strings.CutPrefix(strings.TrimRight(line, "\r"), "#!"); ok && !strings.HasPrefix(shebang, "/") {
		text = shebang
	}
	var stages []part
	for one := range strings.SplitSeq(text, "|") {
		name, arguments, _ := strings.Cut(strings.TrimSpace(one), " ")
		if name == "" {
			continue
		}
		if err := r.known(name); err != nil {
			err.Pos = diag.Pos{File: src.File, Line: 1, Col: 1}
			return nil, err
		}
		stages = append(stages, part{name, strings.TrimSpace(arguments)})
	}
	return stages, nil
}

// known returns an error for a renderer that this engine does not have, with a hint.
func (r *Renderer) known(name string) *diag.Diagnostic {
	switch name {
	case "jinja", "yaml", "json", "text":
		return nil
	case "stateconf":
		if r.Configurations != nil {
			return nil
		}
	}
	if r.Programs != nil && r.Programs.Renders(name) {
		return nil
	}
	if _, ok := r.Decrypters[name]; ok {
		return nil
	}
	return diag.At(diag.Pos{}, "there is no renderer %q here", name).WithHint(diag.Engine, r.otherRenderer(name))
}

// otherRenderer returns the hint for a renderer that does not exist.
func (r *Renderer) otherRenderer(name string) string {
	known := []string{"jinja", "yaml", "json", "text"}
	for k := range r.Decrypters {
		known = append(known, k)
	}
	return cmp.Or(diag.DidYouMean(name, known), "converge this host with `engine: salt-call`, or rewrite the file")
}

func (r *Renderer) stage(ctx context.Context, s *state, p part) error {
	if r.Programs != nil && r.Programs.Renders(p.name) {
		return r.program(ctx, s, p)
	}
	switch p.name {
	case "stateconf":
		return r.stateconf(ctx, s, p.arguments)
	case "jinja":
		return r.jinja(ctx, s)
	case "yaml":
		return s.yaml()
	case "json":
		return s.json()
	case "text":
		return nil
	}
	return r.decrypt(ctx, s, r.Decrypters[p.name])
}

// program passes the present text or data through a renderer in Python.
func (r *Renderer) program(ctx context.Context, s *state, p part) error {
	c := Call{Renderer: p.name, Arguments: p.arguments, Source: s.src, Data: s.text, Vars: s.vars}
	if s.data {
		c.Data = s.doc.Value
	}
	made, err := r.Programs.Render(ctx, c)
	if err != nil {
		return err
	}
	if text, ok := made.(string); ok && !s.data {
		s.text, s.doc.at = text, nil
		return nil
	}
	s.doc.Value, s.doc.yaml, s.data = made, nil, true
	return nil
}

func (r *Renderer) jinja(ctx context.Context, s *state) error {
	src := s.src
	src.Text = s.text
	out, err := r.Templates.Render(ctx, src, s.vars)
	if err != nil {
		return err
	}
	s.text, s.doc.at = out.Text, out.Origin
	return nil
}

func (s *state) yaml() error {
	doc, err := yaml.LoadString(s.text, s.src.File)
	if err != nil {
		return s.doc.relocate(err)
	}
	s.doc.yaml, s.doc.Value, s.data = doc, doc.Value, true
	return nil
}

// relocate moves problems from the rendered text to the file; the excerpts stay those of the
// rendered text.
func (d *Document) relocate(err error) error {
	var list diag.List
	list.AddError(diag.Pos{File: d.file}, err)
	moved := make(diag.List, len(list))
	for i, problem := range list {
		copied := *problem
		copied.Pos = d.origin(problem.Pos)
		moved[i] = &copied
	}
	return moved.Err()
}

func (s *state) json() error {
	text := s.text
	if strings.HasPrefix(text, "#!") {
		_, text, _ = strings.Cut(text, "\n")
	}
	v, err := value.FromJSON([]byte(text))
	if err != nil {
		return diag.At(diag.Pos{File: s.src.File}, "not JSON: %v", err)
	}
	s.doc.Value, s.data = v, true
	return nil
}

// decrypt decrypts a text, or every string in data.
func (r *Renderer) decrypt(ctx context.Context, s *state, with Decrypter) error {
	if !s.data {
		plain, ok, err := with.Decrypt(ctx, s.text)
		if err != nil {
			return diag.At(diag.Pos{File: s.src.File}, "%v", err).KeepHint(diag.HintOf(err))
		}
		if ok {
			s.sealed, s.with = s.text, with
			s.text = plain
		}
		return nil
	}
	w := walker{ctx: ctx, with: with, doc: s.doc}
	s.doc.Value = w.walk(s.doc.Value, nil, nil)
	return w.problems.Err()
}

// walker decrypts the strings inside lists and mappings, in place.
type walker struct {
	ctx      context.Context
	with     Decrypter
	doc      *Document
	problems diag.List
}

func (w *walker) walk(v, container, key any) any {
	switch v := v.(type) {
	case string:
		plain, ok, err := w.with.Decrypt(w.ctx, v)
		if err != nil {
			w.problems.Add(w.doc.Pos(container, key), "%v", err).KeepHint(diag.HintOf(err))
		}
		if n, is := w.with.(Noticer); is && ok {
			n.Decrypted(plain, value.Str(key), w.doc.Pos(container, key))
		}
		if ok {
			return plain
		}
	case *value.Map:
		for _, k := range v.Keys() {
			if old, ok, err := v.GetKey(k); ok && err == nil {
				_ = v.SetKey(k, w.walk(old, v, k)) // the key is valid, since it is in the mapping
			}
		}
	case *value.List:
		for i, item := range v.Items {
			v.Items[i] = w.walk(item, v, i)
		}
	}
	return v
}

// Mapping returns the document's value as a mapping; an empty document is an empty one.
func (d *Document) Mapping() (*value.Map, error) {
	switch v := d.Value.(type) {
	case nil:
		return value.NewMap(), nil
	case *value.Map:
		return v, nil
	}
	if !value.Truth(d.Value) {
		return value.NewMap(), nil
	}
	return nil, diag.At(d.Start(), "it renders to a %s, and a mapping was expected", value.TypeName(d.Value)).
		WithHint(diag.SLS, "an SLS file is `key: value` at its top")
}
