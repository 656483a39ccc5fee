package jinja

import (
	"context"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// object implements value.Object for the types below, which embed it.
type object struct{ pyType string }

func (o object) PyType() string { return o.pyType }
func (o object) PyRepr() string { return "<" + o.pyType + " object>" }
func (o object) PyTruth() bool  { return true }

// iterator yields each item once, as Python's generators do.
type iterator struct {
	object
	next func() (any, bool, error)
	done bool
}

func newIterator(pyType string, next func() (any, bool, error)) *iterator {
	return &iterator{object: object{pyType}, next: next}
}

// Iterate continues after the last item that was read.
func (i *iterator) Iterate() func() (any, bool, error) {
	return func() (any, bool, error) {
		if i.done {
			return nil, false, nil
		}
		v, ok, err := i.next()
		i.done = !ok || err != nil
		return v, ok, err
	}
}

// rangeObject is Python's range.
type rangeObject struct{ start, stop, step, count int }

// newRange returns a range with Python's bounds.
func newRange(start, stop, step int) (*rangeObject, error) {
	if step == 0 {
		return nil, value.Raise("ValueError", "range() arg 3 must not be zero")
	}
	r := &rangeObject{start: start, stop: stop, step: step}
	switch {
	case step > 0 && start < stop:
		r.count = int((uint(stop)-uint(start)-1)/uint(step)) + 1
	case step < 0 && start > stop:
		r.count = int((uint(start)-uint(stop)-1)/-uint(step)) + 1
	}
	return r, nil
}

func (r *rangeObject) PyType() string { return "range" }
func (r *rangeObject) PyTruth() bool  { return r.count > 0 }
func (r *rangeObject) Len() int       { return r.count }

func (r *rangeObject) PyRepr() string {
	text := "range(" + itoa(r.start) + ", " + itoa(r.stop)
	if r.step != 1 {
		text += ", " + itoa(r.step)
	}
	return text + ")"
}

func (r *rangeObject) equal(other any) bool {
	o, ok := other.(*rangeObject)
	return ok && r.count == o.count && (r.count == 0 || r.start == o.start && (r.count == 1 || r.step == o.step))
}

// Iterate yields the numbers.
func (r *rangeObject) Iterate() func() (any, bool, error) {
	i := 0
	return func() (any, bool, error) {
		if i >= r.count {
			return nil, false, nil
		}
		i++
		return r.start + (i-1)*r.step, true, nil
	}
}

// Contains reports whether the range has a number.
func (r *rangeObject) Contains(item any) (bool, error) {
	n, ok := item.(int)
	if f, isFloat := item.(float64); isFloat && f == float64(int(f)) {
		n, ok = int(f), true
	}
	if !ok {
		return false, strict(item)
	}
	offset := n - r.start
	return offset%r.step == 0 && offset/r.step >= 0 && offset/r.step < r.count, nil
}

// GetItem returns the number at an index.
func (r *rangeObject) GetItem(_ context.Context, key any) (any, bool, error) {
	i, err := value.AsIndex(key)
	if err != nil {
		return nil, false, nil
	}
	if i < 0 {
		i += r.count
	}
	if i < 0 || i >= r.count {
		return nil, false, nil
	}
	return r.start + i*r.step, true, nil
}

func (r *rangeObject) slice(start, stop, step any) (any, error) {
	b, err := value.Bounds(start, stop, step, r.count)
	s := &rangeObject{start: r.start + b.Start*r.step, step: b.Step * r.step, count: b.Count}
	s.stop = s.start + s.count*s.step
	return s, err
}

// dictView is the result of keys, values and items of a dict. It reflects later changes of the dict.
type dictView struct {
	object
	m    *value.Map
	pick func(k, v any) any
}

func pickKey(k, _ any) any   { return k }
func pickValue(_, v any) any { return v }
func pickItem(k, v any) any  { return value.Tuple{k, v} }

func keysOf(m *value.Map) *dictView   { return &dictView{object{"dict_keys"}, m, pickKey} }
func valuesOf(m *value.Map) *dictView { return &dictView{object{"dict_values"}, m, pickValue} }
func itemsOf(m *value.Map) *dictView  { return &dictView{object{"dict_items"}, m, pickItem} }

func (d *dictView) PyTruth() bool { return d.m.Len() > 0 }
func (d *dictView) Len() int      { return d.m.Len() }

func (d *dictView) items() value.Tuple {
	items := make(value.Tuple, 0, d.m.Len())
	for k, v := range d.m.All() {
		items = append(items, d.pick(k, v))
	}
	return items
}

func (d *dictView) PyRepr() string {
	return d.pyType + "(" + value.Repr(value.NewList(d.items()...)) + ")"
}

// Iterate yields the keys, values or items of the dict.
func (d *dictView) Iterate() func() (any, bool, error) { return iterateMap(d.m, d.pick) }

// Contains reports whether the view has an item.
func (d *dictView) Contains(item any) (bool, error) {
	if d.pyType == "dict_keys" {
		return d.m.HasKey(item)
	}
	return value.Contains(d.items(), item), nil
}

func (d *dictView) equal(other any) bool {
	o, ok := other.(*dictView)
	if !ok || d.pyType != o.pyType || d.Len() != o.Len() || d.pyType == "dict_values" {
		return d == other
	}
	for _, item := range d.items() {
		if found, err := o.Contains(item); err != nil || !found {
			return false
		}
	}
	return true
}

// namedTuple is a tuple whose items have names too.
type namedTuple struct {
	items value.Tuple
	names []string
}

func (n *namedTuple) PyType() string { return "tuple" }
func (n *namedTuple) PyRepr() string { return value.Repr(n.items) }
func (n *namedTuple) PyTruth() bool  { return true }
func (n *namedTuple) Len() int       { return len(n.items) }

// JSONItems returns the items, which JSON writes as a list.
func (n *namedTuple) JSONItems() []any { return n.items }

// Iterate yields the items.
func (n *namedTuple) Iterate() func() (any, bool, error) { return iterateItems(n.items) }

// GetAttr returns an item by its name.
func (n *namedTuple) GetAttr(_ context.Context, name string) (any, bool, error) {
	for i, known := range n.names {
		if known == name {
			return n.items[i], true, nil
		}
	}
	return nil, false, nil
}

// plainTuple converts a named tuple to a plain one.
func plainTuple(v any) any {
	if n, ok := v.(*namedTuple); ok {
		return n.items
	}
	return v
}

// namespace is the result of namespace(): an object whose attributes a template may set in any scope.
type namespace struct{ attrs *value.Map }

func (n *namespace) PyType() string { return "jinja2.utils.Namespace" }
func (n *namespace) PyRepr() string { return "<Namespace " + value.Repr(n.attrs) + ">" }
func (n *namespace) PyTruth() bool  { return true }

// Names returns the attributes.
func (n *namespace) Names() []string { return n.attrs.Names() }

// GetAttr returns an attribute.
func (n *namespace) GetAttr(_ context.Context, name string) (any, bool, error) {
	v, ok := n.attrs.Get(name)
	return v, ok, nil
}

// module is an imported template.
type module struct {
	name  string
	body  string
	names map[string]any
}

func (m *module) PyType() string         { return "jinja2.environment.TemplateModule" }
func (m *module) PyRepr() string         { return "<TemplateModule " + value.Repr(m.name) + ">" }
func (m *module) PyTruth() bool          { return true }
func (m *module) PyStr() (string, error) { return m.body, nil }

// Names returns the names that the template exports.
func (m *module) Names() []string {
	var names []string
	for name := range m.names {
		names = append(names, name)
	}
	return names
}

// GetAttr returns an exported variable.
func (m *module) GetAttr(_ context.Context, name string) (any, bool, error) {
	v, ok := m.names[name]
	return v, ok, nil
}

// textOf returns the text of a template module, or the value itself.
func textOf(v any) any {
	if m, ok := v.(*module); ok {
		return m.body
	}
	return v
}

// builtin is a function of Jinja2's or Python's.
type builtin struct {
	name string
	call func(c *Call) (any, error)
}

func (b *builtin) PyType() string { return "builtin_function_or_method" }
func (b *builtin) PyTruth() bool  { return true }

func (b *builtin) PyRepr() string {
	switch b.name {
	case "dict", "range", "str", "int", "float", "list", "bool":
		return "<class '" + b.name + "'>"
	}
	return "<built-in function " + strings.TrimPrefix(b.name, ".") + ">"
}

// Call calls the function.
func (b *builtin) Call(c *Call) (any, error) { return b.call(c) }
