package defaults

import (
	"context"
	"fmt"

	"github.com/corpus-agent/corpus-agent/state/jinja"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// object implements the methods that all variables of a template share.
type object struct{ name string }

// PyType, PyRepr and PyTruth are part of value.Object.
func (o object) PyType() string { return o.name }
func (o object) PyRepr() string { return "<" + o.name + ">" }
func (o object) PyTruth() bool  { return true }

// unknown is a variable that only a host has.
type unknown struct{ object }

// GetAttr and GetItem refuse every access, even with a default: the default of a template is for hosts that lack a
// grain, and here no grain is known.
func (u *unknown) GetAttr(_ context.Context, name string) (any, bool, error) {
	return nil, false, fmt.Errorf("%s.%s is known only on a host", u.name, name)
}

// GetItem is part of jinja.ItemGetter.
func (u *unknown) GetItem(ctx context.Context, key any) (any, bool, error) {
	return nil, false, fmt.Errorf("%s[%s] is known only on a host", u.name, value.Repr(key))
}

// pillar is the variable pillar, which has the default values.
type pillar struct {
	object
	data *value.Map
}

// GetAttr returns the method get, or a value.
func (p *pillar) GetAttr(ctx context.Context, name string) (any, bool, error) {
	if name == "get" {
		return jinja.Function("pillar.get", p.get), true, nil
	}
	return p.GetItem(ctx, name)
}

// GetItem returns the value of a key.
func (p *pillar) GetItem(_ context.Context, key any) (any, bool, error) { return p.data.GetKey(key) }

// Explain returns the error for a value without a default.
func (p *pillar) Explain(name any) error { return noDefault(value.Str(name)) }

// Contains implements 'key' in pillar.
func (p *pillar) Contains(key any) (bool, error) {
	_, found, err := p.data.GetKey(key)
	return found, err
}

// get implements pillar.get('key', default).
func (p *pillar) get(c *jinja.Call) (any, error) {
	key, fallback, err := arguments(c)
	if err != nil {
		return nil, err
	}
	if v, found, err := p.data.GetKey(key); found || err != nil {
		return v, err
	}
	return fallback, nil
}

// functions is the variable salt of templates. It has only pillar.get: other functions read a host.
type functions struct {
	object
	data *value.Map
}

// GetAttr returns salt.pillar.
func (f *functions) GetAttr(_ context.Context, name string) (any, bool, error) {
	if name == "pillar" {
		return &module{object{"salt.pillar"}, f}, true, nil
	}
	return nil, false, onHost(name)
}

// GetItem returns salt['pillar.get'].
func (f *functions) GetItem(_ context.Context, key any) (any, bool, error) {
	if key == "pillar.get" {
		return jinja.Function("pillar.get", f.get), true, nil
	}
	return nil, false, onHost(value.Str(key))
}

func onHost(name string) error { return fmt.Errorf("salt['%s'] asks a host", name) }

// get implements salt['pillar.get']('a:b', default).
func (f *functions) get(c *jinja.Call) (any, error) {
	key, fallback, err := arguments(c)
	if err != nil {
		return nil, err
	}
	if v, found := value.Lookup(f.data, value.Str(key), ":"); found {
		return v, nil
	}
	return fallback, nil
}

// module is the value of salt.pillar.
type module struct {
	object
	functions *functions
}

// GetAttr returns salt.pillar.get.
func (m *module) GetAttr(ctx context.Context, name string) (any, bool, error) {
	return m.functions.GetItem(ctx, "pillar."+name)
}

// arguments returns the key and the default of a call of either form of get. The default of a call without one is an
// absent value.
func arguments(c *jinja.Call) (key, fallback any, err error) {
	if len(c.Args) == 0 || len(c.Args) > 2 {
		return nil, nil, fmt.Errorf("pillar.get takes a key and a default here")
	}
	if len(c.Args) == 2 {
		return c.Args[0], c.Args[1], nil
	}
	if v, given := c.Kwargs.Get("default"); given {
		return c.Args[0], v, nil
	}
	return c.Args[0], absent{object{"absent"}, value.Str(c.Args[0])}, nil
}

// absent is the result of get without a default for a key that does not exist. It is false in a test, and an error in
// output.
type absent struct {
	object
	key string
}

// PyTruth returns false.
func (absent) PyTruth() bool { return false }

// PyStr returns an error.
func (a absent) PyStr() (string, error) { return "", noDefault(a.key) }

func noDefault(key string) error { return fmt.Errorf("the pillar key %q has no default", key) }
