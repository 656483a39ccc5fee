package session

import (
	"context"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/jinja"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// saltObject is salt in templates: salt['pillar.get'](...) and salt.pillar.get(...).
type saltObject struct{ functions Functions }

// PyType, PyRepr and PyTruth are part of value.Object.
func (*saltObject) PyType() string    { return "AliasedLoader" }
func (*saltObject) PyRepr() string    { return "<salt functions>" }
func (*saltObject) PyTruth() bool     { return true }
func (o *saltObject) Names() []string { return o.functions.Names() }

// GetItem finds a function by its full name.
func (o *saltObject) GetItem(_ context.Context, key any) (any, bool, error) {
	name, ok := key.(string)
	if !ok {
		return nil, false, nil
	}
	if strings.Contains(name, ".") {
		// A function that is not there is found when it is called, and refused with its reason.
		return &functionObject{name: name, functions: o.functions}, true, nil
	}
	return o.module(name)
}

// GetAttr finds a module.
func (o *saltObject) GetAttr(_ context.Context, name string) (any, bool, error) {
	return o.module(name)
}

func (o *saltObject) module(name string) (any, bool, error) {
	prefix := name + "."
	if !slices.ContainsFunc(o.functions.Names(), func(n string) bool { return strings.HasPrefix(n, prefix) }) {
		return nil, false, nil
	}
	return &moduleObject{name: name, functions: o.functions}, true, nil
}

// Contains is 'pillar.get' in salt.
func (o *saltObject) Contains(item any) (bool, error) {
	name, ok := item.(string)
	return ok && o.functions.Has(name), nil
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

// GetAttr finds a function of the module.
func (m *moduleObject) GetAttr(_ context.Context, name string) (any, bool, error) {
	full := m.name + "." + name
	if !m.functions.Has(full) {
		return nil, false, nil
	}
	return &functionObject{name: full, functions: m.functions}, true, nil
}

// GetItem is GetAttr: salt['pillar']['get'].
func (m *moduleObject) GetItem(ctx context.Context, key any) (any, bool, error) {
	name, ok := key.(string)
	if !ok {
		return nil, false, nil
	}
	return m.GetAttr(ctx, name)
}

// functionObject is one function, to be called.
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
