package jinja

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/jinja/syntax"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func itoa(n int) string { return strconv.Itoa(n) }

// Error is a mistake in a template or a failure of its run. It is a *diag.Diagnostic as well, for errors.As: its
// position has the line that Jinja2 names, which is the line where the statement or the printed expression starts, and
// its excerpt shows the exact position.
type Error struct {
	Diagnostic *diag.Diagnostic
	Kind       string     // Jinja2's or Python's class, such as UndefinedError or TypeError
	Trace      []diag.Pos // positions of the calls of macros and templates, innermost first

	cause    error
	template *Template
	at       int // offset of the exact position
	line     int // the line that Jinja2 names; 0 until the statement is known
	shown    int // number of positions of Trace that are in the message already
	extra    string
}

func (e *Error) Error() string { return e.Diagnostic.Error() }

// Unwrap returns the diagnostic, and the cause of the error if a callable returned it.
func (e *Error) Unwrap() []error {
	if e.cause == nil {
		return []error{e.Diagnostic}
	}
	return []error{e.Diagnostic, e.cause}
}

func (t *Template) lineCol(at int) (line, col int) { return t.lines.lineCol(t.text, at) }

func (t *Template) pos(at int) diag.Pos {
	line, col := t.lineCol(at)
	return diag.Pos{File: t.file, Line: line, Col: col}
}

// syntaxError converts an error of package syntax or of the compiler to an *Error.
func (t *Template) syntaxError(err error) error {
	var s *syntax.Error
	if !errors.As(err, &s) {
		return err
	}
	e := &Error{Diagnostic: diag.At(diag.Pos{}, "%s", s.Message).KeepHint(s.Hint), Kind: s.Kind, template: t, at: s.Offset,
		line: s.Line}
	e.place()
	return e
}

// again returns a copy of e. Parse caches its errors, and each Render adds to the error that it returns.
func (e *Error) again() *Error {
	c, d := *e, *e.Diagnostic
	c.Diagnostic = &d
	return &c
}

// margin returns the column of the first character on a line that is not a space or a tab.
func (t *Template) margin(line int) int {
	text := t.text[t.lines.offset(t.text, line, 1):]
	return len(text) - len(strings.TrimLeft(text, " \t")) + 1
}

// usual returns the default hint of a kind of error.
func usual(kind string) string {
	switch kind {
	case "TypeError", "ValueError":
		return "look at what the values are: {{ x | int }} and {{ x | string }} make one of the other"
	case "TemplateSyntaxError":
		return "{{ }} holds one expression and {% %} one statement; put what another program reads, such as docker's " +
			"{{.Names}}, between {% raw %} and {% endraw %}"
	case "AttributeError", "KeyError", "IndexError":
		return "use .get(...) or | default(...) for what may be missing"
	case "ZeroDivisionError":
		return "test the number before dividing by it"
	}
	return "look at the place that the excerpt shows"
}

// place sets the position and the excerpt.
func (e *Error) place() {
	line, col := e.template.lineCol(e.at)
	d := e.Diagnostic
	d.Hint = diag.Jinja.Coded(cmp.Or(d.Hint, usual(e.Kind)))
	d.Excerpt = diag.Excerpt(e.template.text, line, col)
	if e.extra != "" {
		d.Excerpt += e.extra
	}
	d.Pos = diag.Pos{File: e.template.file, Line: line, Col: col}
	if e.line > 0 && e.line != line {
		d.Pos.Line, d.Pos.Col = e.line, e.template.margin(e.line)
		d.Message += " (on line " + itoa(line) + ")"
	}
}

// Failure is an error that a callable, a filter or a test returns to report it with a Python class. Render adds the
// position.
type Failure struct {
	Class   string // such as TypeError
	Message string
	Hint    string
	Excerpt string // excerpt of another text that has the mistake, such as one that was loaded

	hostOnly bool  // see [diag.HostOnly]
	cause    error // the error of the host that caused it; nil for none
}

func (f *Failure) Error() string { return f.Message }

// Unwrap returns the error of the host that caused it, or nil.
func (f *Failure) Unwrap() error { return f.cause }

// HostOnly implements [diag.IsHostOnly].
func (f *Failure) HostOnly() bool { return f.hostOnly }

func raise(kind, message string) error { return &Failure{Class: kind, Message: message} }

func templateError(message string) error { return raise("TemplateRuntimeError", message) }
func typeError(message string) error     { return raise("TypeError", message) }
func withHint(err error, hint string) error {
	return &Failure{Class: kindOf(err), Message: err.Error(), Hint: hint, hostOnly: diag.IsHostOnly(err),
		cause: diag.CauseOf(err)}
}
func noAttribute(v any, name string) error {
	return raise("AttributeError", "'"+value.TypeName(v)+"' object has no attribute '"+name+"'")
}
func notFound(name, hint string) error {
	return &Failure{Class: "TemplateNotFound", Message: "there is no template " + name, Hint: hint}
}
func isKind(err error, kinds ...string) bool {
	kind := kindOf(err)
	for _, k := range kinds {
		if k == kind {
			return true
		}
	}
	return false
}

// kindOf returns the class of an error, or "" if it has none.
func kindOf(err error) string {
	var e *Error
	var r *Failure
	switch {
	case errors.As(err, &e):
		return e.Kind
	case errors.As(err, &r):
		return r.Class
	}
	return value.ClassOf(err)
}

// fail adds a position to an error that has none.
func (f *frame) fail(at int, err error) error {
	var e *Error
	if errors.As(err, &e) {
		return err
	}
	message, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
	if message == "" { // as with raise('')
		message = "the template stops here, and does not say why"
	}
	e = &Error{Diagnostic: diag.At(diag.Pos{}, "%s", message), Kind: kindOf(err), template: f.t, at: at}
	e.Diagnostic.Hint, e.Diagnostic.Cause, e.Diagnostic.HostOnly = diag.HintOf(err), diag.CauseOf(err),
		diag.IsHostOnly(err)
	e.Diagnostic.Object = diag.ObjectOf(err)
	var r *Failure
	var l *limitError
	switch {
	case errors.As(err, &r):
		e.Diagnostic.Hint, e.extra = r.Hint, r.Excerpt
	case errors.As(err, &l):
		e.Diagnostic.Hint, e.Kind = l.hint, "LimitError"
	case e.Kind == "":
		e.Kind, e.cause = "Exception", err
	}
	return e
}

// onLine sets the line that Jinja2 would name for an error, unless it is set.
func (f *frame) onLine(line, at int, err error) error {
	err = f.fail(at, err)
	var e *Error
	if errors.As(err, &e) && e.line == 0 {
		e.line = line
	}
	return err
}

// calledAt adds the position of a call of a macro or a template to the trace of an error.
func (f *frame) calledAt(at int, err error) error {
	var e *Error
	if errors.As(err, &e) && e.line > 0 {
		const enough = 8
		if len(e.Trace) < enough {
			e.Trace = append(e.Trace, f.t.pos(at))
		}
	}
	return err
}

// cycleOf joins the positions of a trace that repeats itself, up to the first repeated one; it returns "" for any
// other trace.
func cycleOf(trace []diag.Pos) string {
	for period := 1; period <= len(trace)/2; period++ {
		if !slices.Equal(trace[period:], trace[:len(trace)-period]) {
			continue
		}
		var places []string
		for _, pos := range slices.Backward(trace[:period]) {
			places = append(places, pos.String())
		}
		return strings.Join(append(places, places[0]), " -> ")
	}
	return ""
}

// finish completes an error that ended the run.
func (r *run) finish(err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	if e.Diagnostic.Pos.IsZero() {
		e.place()
	}
	if cycle := cycleOf(e.Trace); cycle != "" && e.shown == 0 {
		e.Diagnostic.Message += ", in a cycle: " + cycle
		e.shown = len(e.Trace)
	}
	for ; e.shown < len(e.Trace); e.shown++ {
		if pos := e.Trace[e.shown]; e.shown == 0 || pos != e.Trace[e.shown-1] {
			e.Diagnostic.Message += ", called from " + pos.String()
		}
	}
	return e
}
