package session

import (
	"context"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/jinja"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// saltObject is the variable salt of templates: salt['pillar.get'](...) and salt.pillar.get(...). A function that
// does not exist is undefined, so that templates can test for it.
type saltObject struct {
	functions Functions
	modules   map[string]bool
}

func newSaltObject(functions Functions, names []string) *saltObject {
	o := &saltObject{functions: functions, modules: map[string]bool{}}
	for _, name := range names {
		module, _, _ := strings.Cut(name, ".")
		o.modules[module] = true
	}
	return o
}

// PyType, PyRepr and PyTruth are part of value.Object.
func (*saltObject) PyType() string    { return "AliasedLoader" }
func (*saltObject) PyRepr() string    { return "<salt functions>" }
func (*saltObject) PyTruth() bool     { return true }
func (o *saltObject) Names() []string { return o.functions.Names() }

// Explain returns the reason why the function does not exist, with a hint.
func (o *saltObject) Explain(name any) error {
	text, ok := name.(string)
	if !ok {
		return nil
	}
	return o.functions.Unknown(text)
}

// GetItem finds a function by its full name.
func (o *saltObject) GetItem(_ context.Context, key any) (any, bool, error) {
	name, ok := key.(string)
	if !ok || !o.functions.Has(name) {
		return nil, false, o.functions.Lost(name)
	}
	return &functionObject{name: name, functions: o.functions}, true, nil
}

// GetAttr returns a module by name, or the methods get and keys of a mapping.
func (o *saltObject) GetAttr(_ context.Context, name string) (any, bool, error) {
	switch {
	// an earlier state may have installed its program
	case o.modules[name], len((&moduleObject{name, o.functions}).Names()) > 0:
		return &moduleObject{name: name, functions: o.functions}, true, nil
	case name == "get":
		return jinja.Function(name, o.get), true, nil
	case name == "keys":
		return jinja.Function(name, func(*jinja.Call) (any, error) { return value.Strings(o.Names()...), nil }), true, nil
	}
	return nil, false, o.functions.Lost(name)
}

// get implements salt.get('module.function', default).
func (o *saltObject) get(c *jinja.Call) (any, error) {
	if len(c.Args) == 0 || len(c.Args) > 2 {
		return nil, &jinja.Failure{Class: "TypeError", Message: "salt.get takes a name and a default"}
	}
	if v, found, err := o.GetItem(c.Context(), c.Args[0]); found || err != nil {
		return v, err
	}
	if len(c.Args) == 2 {
		return c.Args[1], nil
	}
	return c.Kwargs.Value("default"), nil
}

// Contains implements 'pillar.get' in salt.
func (o *saltObject) Contains(item any) (bool, error) {
	name, ok := item.(string)
	if ok && o.functions.Has(name) {
		return true, nil
	}
	return false, o.functions.Lost(name)
}

// moduleObject is salt.pillar.
type moduleObject struct {
	name      string
	functions Functions
}

// PyType, PyRepr and PyTruth are part of value.Object.
func (*moduleObject) PyType() string   { return "LoadedMod" }
func (m *moduleObject) PyRepr() string { return "<salt functions of " + m.name + ">" }
func (*moduleObject) PyTruth() bool    { return true }

// Names lists the functions of the module.
func (m *moduleObject) Names() []string {
	var names []string
	for _, n := range m.functions.Names() {
		if rest, ok := strings.CutPrefix(n, m.name+"."); ok {
			names = append(names, rest)
		}
	}
	return names
}

// Explain returns the reason why the module has no such function.
func (m *moduleObject) Explain(name any) error {
	text, ok := name.(string)
	if !ok {
		return nil
	}
	return m.functions.Unknown(m.name + "." + text)
}

// Contains implements 'get' in salt.pillar.
func (m *moduleObject) Contains(item any) (bool, error) {
	name, ok := item.(string)
	if full := m.name + "." + name; ok && !m.functions.Has(full) {
		return false, m.functions.Lost(full)
	}
	return ok, nil
}

// GetAttr returns a function of the module.
func (m *moduleObject) GetAttr(_ context.Context, name string) (any, bool, error) {
	full := m.name + "." + name
	if !m.functions.Has(full) {
		return nil, false, m.functions.Lost(full)
	}
	return &functionObject{name: full, functions: m.functions}, true, nil
}

// GetItem implements salt['pillar']['get'].
func (m *moduleObject) GetItem(ctx context.Context, key any) (any, bool, error) {
	name, ok := key.(string)
	if !ok {
		return nil, false, nil
	}
	return m.GetAttr(ctx, name)
}

// functionObject is one function, ready to be called.
type functionObject struct {
	name      string
	functions Functions
}

// PyType, PyRepr and PyTruth are part of value.Object.
func (*functionObject) PyType() string   { return "function" }
func (f *functionObject) PyRepr() string { return "<function " + f.name + ">" }
func (*functionObject) PyTruth() bool    { return true }

// Call calls the function.
func (f *functionObject) Call(c *jinja.Call) (any, error) {
	kwargs := c.Kwargs
	if kwargs == nil {
		kwargs = value.NewMap()
	}
	return f.functions.Call(c.Context(), f.name, c.Args, kwargs)
}
