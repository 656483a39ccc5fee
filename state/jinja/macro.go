package jinja

import (
	"context"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// macroCode is a compiled macro or call block.
type macroCode struct {
	fn       *function
	name     string // "" for a call block
	args     []macroArg
	caller   int // slot of the variable caller, or -1 if the body does not use it
	kwargs   int
	varargs  int
	explicit bool // caller is one of the arguments
	at       int
	line     int
}

type macroArg struct {
	name     string
	slot     int
	fallback expr // nil if there is none
}

// macro is a macro with the frame in which it was defined, whose variables it sees.
type macro struct {
	code *macroCode
	f    *frame
}

func (m *macro) PyType() string { return "jinja2.runtime.Macro" }
func (m *macro) PyTruth() bool  { return true }
func (m *macro) PyRepr() string {
	if m.code.name == "" {
		return "<Macro anonymous>"
	}
	return "<Macro " + value.Repr(m.code.name) + ">"
}

// GetAttr returns an attribute of the macro: its name, arguments and so on.
func (m *macro) GetAttr(_ context.Context, name string) (any, bool, error) {
	switch name {
	case "name":
		if m.code.name == "" {
			return nil, true, nil
		}
		return m.code.name, true, nil
	case "arguments":
		names := make(value.Tuple, len(m.code.args))
		for i, a := range m.code.args {
			names[i] = a.name
		}
		return names, true, nil
	case "catch_kwargs":
		return m.code.kwargs >= 0, true, nil
	case "catch_varargs":
		return m.code.varargs >= 0, true, nil
	case "caller":
		return m.code.caller >= 0 || m.code.explicit, true, nil
	}
	return nil, false, nil
}

// call runs the macro and returns its output.
func (m *macro) call(c *Call) (any, error) {
	r := m.f.r
	if err := r.enter(); err != nil {
		return nil, err
	}
	defer r.leave()
	f := newFrame(m.code.fn, r, m.f.t, m.f.scope, m.f, nil)
	if err := m.bind(f, c); err != nil {
		return nil, err
	}
	f.start(m.code.fn.enter)
	if err := m.fallbacks(f); err != nil {
		return nil, err
	}
	return f.captured(func() error {
		_, err := execAll(m.code.fn.body, f)
		return err
	})
}

// bind sets the parameters in the frame to the arguments of a call. Parameters without an argument stay missing.
func (m *macro) bind(f *frame, c *Call) error {
	code := m.code
	kwargs := c.Kwargs
	if kwargs != nil || code.kwargs >= 0 {
		kwargs = value.NewMap().Plain()
		kwargs.Update(c.Kwargs)
	}
	foundCaller := code.explicit && len(c.Args) >= len(code.args)
	for i, a := range code.args {
		if i < len(c.Args) {
			f.slots[a.slot] = c.Args[i]
			continue
		}
		if v, ok := kwargs.Get(a.name); ok {
			f.slots[a.slot] = v
			kwargs.Delete(a.name)
		}
		foundCaller = foundCaller || a.name == "caller"
	}
	if code.caller >= 0 && !foundCaller {
		v, ok := kwargs.Get("caller")
		kwargs.Delete("caller")
		if !ok || v == nil {
			v = f.undefinedBecause("No caller defined", "caller")
		}
		f.slots[code.caller] = v
	}
	return m.bindRest(f, c, kwargs)
}

func (m *macro) bindRest(f *frame, c *Call, kwargs *value.Map) error {
	code := m.code
	name := value.Repr(code.name)
	if code.name == "" {
		name = "None"
	}
	switch {
	case code.kwargs >= 0:
		f.slots[code.kwargs] = kwargs
	case kwargs.Has("caller"):
		return withHint(typeError("macro "+name+
			" was invoked with two values for the special caller argument. This is most likely a bug."),
			"the macro is called by a call block but does not use caller()")
	case kwargs.Len() > 0:
		given := kwargs.Names()[0]
		return withHint(typeError("macro "+name+" takes no keyword argument "+value.Repr(given)), m.suggestArgument(given))
	}
	more := value.Tuple{}
	if len(c.Args) > len(code.args) {
		more = append(more, c.Args[len(code.args):]...)
	}
	switch {
	case code.varargs >= 0:
		f.slots[code.varargs] = more
	case len(more) > 0:
		return typeError("macro " + name + " takes not more than " + itoa(len(code.args)) + " argument(s)")
	}
	return nil
}

func (m *macro) suggestArgument(given string) string {
	var known []string
	for _, a := range m.code.args {
		known = append(known, a.name)
	}
	if len(known) == 0 {
		return "it takes no arguments"
	}
	return suggest(given, known)
}

// fallbacks sets missing arguments to their defaults.
func (m *macro) fallbacks(f *frame) error {
	for _, a := range m.code.args {
		if f.slots[a.slot] != any(missing) {
			continue
		}
		if a.fallback == nil {
			f.slots[a.slot] = f.undefinedBecause("parameter "+value.Repr(a.name)+" was not provided", a.name)
			continue
		}
		v, err := a.fallback.eval(f)
		if err != nil {
			return f.onLine(m.code.line, m.code.at, err)
		}
		f.slots[a.slot] = v
	}
	return nil
}

// macroStmt defines a macro.
type macroStmt struct {
	code   *macroCode
	target place
	export string // its name if it is a macro of the template itself
}

func (s *macroStmt) exec(f *frame) (flow, error) {
	m := &macro{code: s.code, f: f}
	if s.export != "" {
		f.scope.set(s.export, m, true)
	}
	*f.at(s.target) = m
	return flowNext, nil
}

// callStmt is a call block.
type callStmt struct {
	code *macroCode
	call *callExpr
	at   int
	line int
}

func (s *callStmt) exec(f *frame) (flow, error) {
	v, err := s.call.evalWith(f, &macro{code: s.code, f: f})
	if err != nil {
		err = f.calledAt(s.call.at, f.fail(s.call.at, err))
	} else {
		err = f.print(v, s.at)
	}
	if err != nil {
		return flowNext, f.onLine(s.line, s.at, err)
	}
	return flowNext, nil
}
