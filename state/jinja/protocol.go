package jinja

import (
	"context"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Besides plain values, callers can pass objects to templates that implement value.Object and any of the following
// interfaces.

// Callable is an object that templates may call.
type Callable interface {
	value.Object
	Call(c *Call) (any, error)
}

// AttrGetter is an object with attributes, as in salt.pillar. If found is false, the template looks for an item.
type AttrGetter interface {
	value.Object
	GetAttr(ctx context.Context, name string) (v any, found bool, err error)
}

// ItemGetter is an object with items, as in salt['pillar.get'].
type ItemGetter interface {
	value.Object
	GetItem(ctx context.Context, key any) (v any, found bool, err error)
}

// Operand is an object with operators, such as < and +. One of a and b is the object.
type Operand interface {
	value.Object
	Operate(ctx context.Context, sign string, a, b any) (any, error)
}

// operandOf returns the one of two values that has operators of its own.
func operandOf(a, b any) (Operand, bool) {
	if o, ok := a.(Operand); ok {
		return o, true
	}
	o, ok := b.(Operand)
	return o, ok
}

// Namer is an object that lists the names of its attributes or items, for hints.
type Namer interface {
	value.Object
	Names() []string
}

// Explainer is an object that explains why it lacks an attribute or item. The missing value is undefined like any
// other: tests and defaults accept it, and other uses return the error. Nil stands for the usual message.
type Explainer interface {
	value.Object
	Explain(name any) error
}

// Iterable is an object that loops can iterate over. Iterate returns a function that returns one item after the other,
// and false after the last.
type Iterable interface {
	value.Object
	Iterate() func() (item any, ok bool, err error)
}

// Sized is an object with a length.
type Sized interface {
	value.Object
	Len() int
}

// Container is an object that implements the operator in.
type Container interface {
	value.Object
	Contains(item any) (bool, error)
}

// Call is a call of a Callable, a Filter or a Test. For the latter two, the first argument is their operand. Lists,
// mappings and strings are passed unchanged; values that only templates have, such as ranges, are passed as lists.
type Call struct {
	Args   []any
	Kwargs *value.Map // nil if there are none

	f  *frame
	at int
}

// Context returns the context of Render.
func (c *Call) Context() context.Context { return c.f.r.ctx }

// Pos returns the position of the call in the template.
func (c *Call) Pos() diag.Pos { return c.f.t.pos(c.at) }

// Filter is applied to a value as in value | filter(arguments).
type Filter func(c *Call) (any, error)

// Test is applied to a value as in value is test(arguments).
type Test func(c *Call) (bool, error)

// iterate returns a function that yields the items of a value as a loop reads them.
func iterate(v any) (func() (any, bool, error), error) {
	switch v := v.(type) {
	case *value.List:
		return iterateList(v), nil
	case value.Tuple:
		return iterateItems(v), nil
	case *value.Map:
		return iterateMap(v, func(k, _ any) any { return k }), nil
	case string:
		return iterateString(v), nil
	case []byte:
		return iterateBytes(v), nil
	case *Undefined:
		return iterateItems(nil), strict(v)
	case Iterable:
		return v.Iterate(), nil
	}
	err := typeError("'" + value.TypeName(v) + "' object is not iterable")
	if hint := uncalled(v); hint != "" {
		err = withHint(err, hint)
	}
	return nil, err
}

// iterateList yields the items of a list, including those that are added meanwhile, as Python does.
func iterateList(l *value.List) func() (any, bool, error) {
	i := 0
	return func() (any, bool, error) {
		if i >= len(l.Items) {
			return nil, false, nil
		}
		i++
		return l.Items[i-1], true, nil
	}
}

func iterateItems(items []any) func() (any, bool, error) {
	i := 0
	return func() (any, bool, error) {
		if i >= len(items) {
			return nil, false, nil
		}
		i++
		return items[i-1], true, nil
	}
}

// iterateMap yields the result of pick for every key and value. The size of the mapping must not change meanwhile.
func iterateMap(m *value.Map, pick func(k, v any) any) func() (any, bool, error) {
	keys := m.Keys()
	i := 0
	return func() (any, bool, error) {
		if i >= len(keys) {
			return nil, false, nil
		}
		if m.Len() != len(keys) {
			return nil, false, raise("RuntimeError", "dictionary changed size during iteration")
		}
		v, _, _ := m.GetKey(keys[i])
		i++
		return pick(keys[i-1], v), true, nil
	}
}

func iterateString(s string) func() (any, bool, error) {
	runes := []rune(s)
	i := 0
	return func() (any, bool, error) {
		if i >= len(runes) {
			return nil, false, nil
		}
		i++
		return string(runes[i-1]), true, nil
	}
}

func iterateBytes(b []byte) func() (any, bool, error) {
	i := 0
	return func() (any, bool, error) {
		if i >= len(b) {
			return nil, false, nil
		}
		i++
		return int(b[i-1]), true, nil
	}
}

// listOf returns the items of a value, as Python's list(v) does. It counts steps, since an iterator may be infinite.
func (f *frame) listOf(v any) ([]any, error) {
	switch v := v.(type) {
	case *value.List:
		return append([]any(nil), v.Items...), f.r.step(len(v.Items) / 16)
	case value.Tuple:
		return append([]any(nil), v...), f.r.step(len(v) / 16)
	}
	next, err := iterate(v)
	if err != nil {
		return nil, err
	}
	return f.collect(next)
}

// collect returns the items of an iteration as a list, and counts its steps and memory.
func (f *frame) collect(next func() (any, bool, error)) ([]any, error) {
	var items []any
	for {
		item, ok, err := next()
		if !ok || err != nil {
			return items, err
		}
		items = append(items, item)
		if err := f.r.step(1); err != nil {
			return nil, err
		}
		if err := f.r.charge(16); err != nil {
			return nil, err
		}
	}
}

// lengthOf returns the length of a value, as Python's len(v) does.
func lengthOf(v any) (int, error) {
	if n, ok := value.Len(v); ok {
		return n, nil
	}
	switch v := v.(type) {
	case *Undefined:
		return 0, strict(v)
	case Sized:
		return v.Len(), nil
	}
	return 0, typeError("object of type '" + value.TypeName(v) + "' has no len()")
}

// plain converts values that only templates have to plain ones, for callables of other packages.
func (f *frame) plain(v any) (any, error) {
	switch o := v.(type) {
	case *namedTuple:
		return o.items, nil
	case *iterator, *rangeObject, *dictView:
		items, err := f.listOf(v)
		return &value.List{Items: items}, err
	}
	return v, nil
}
