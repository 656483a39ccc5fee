package jinja

import (
	"math/big"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// method is a method of a plain value. If raw is set, call parses the arguments itself.
type method struct {
	params []Param
	raw    bool
	call   func(c *Call, self any) (any, error)
}

func (m *method) invoke(c *Call, self any, name string) (any, error) {
	if !m.raw {
		if err := c.bind(name, m.params); err != nil {
			return nil, err
		}
	}
	v, err := m.call(c, self)
	if err != nil {
		return nil, err
	}
	if s, ok := v.(string); ok {
		err = c.f.r.charge(len(s))
	}
	return v, err
}

// boundMethod is a method that was looked up but not called yet.
type boundMethod struct {
	self   any
	name   string
	method *method
}

func (b *boundMethod) PyType() string { return "builtin_function_or_method" }
func (b *boundMethod) PyTruth() bool  { return true }
func (b *boundMethod) PyRepr() string {
	return "<built-in method " + b.name + " of " + value.TypeName(b.self) + " object>"
}

// uncalled returns a hint if v is a method in the place of a value, most often of a key of a mapping. It returns "" for
// other values.
func uncalled(v any) string {
	b, ok := v.(*boundMethod)
	if !ok {
		return ""
	}
	if _, isMap := b.self.(*value.Map); isMap {
		return "." + b.name + " is a method of every mapping: write [" + value.Repr(b.name) + "] for the key, or ." + b.name +
			"(...) to call the method"
	}
	return "." + b.name + " is a method: write ." + b.name + "(...) to call it"
}

// methods holds the methods of plain values by their types.
type methods struct{ text, bytes, dict, list, tuple, int, float, cycler, loop map[string]*method }

func newMethods() *methods {
	return &methods{
		text: textMethods(), bytes: bytesMethods(), dict: dictMethods(), list: listMethods(), tuple: tupleMethods(),
		int: intMethods(), float: floatMethods(), cycler: cyclerMethods(), loop: loopMethods(),
	}
}

// of returns the methods of a value. A nil *methods has none.
func (m *methods) of(v any) map[string]*method {
	if m == nil {
		return nil
	}
	switch v.(type) {
	case string:
		return m.text
	case *value.Map:
		return m.dict
	case *value.List:
		return m.list
	case value.Tuple, *namedTuple:
		return m.tuple
	case []byte:
		return m.bytes
	case int, *big.Int, bool:
		return m.int
	case float64:
		return m.float
	case *cycler:
		return m.cycler
	case *loopContext:
		return m.loop
	}
	return nil
}

// attribute implements Python's getattr for v: it returns a method, or an attribute of an object.
func (f *frame) attribute(v any, name string) (any, bool, error) {
	if m, ok := f.r.env.methods.of(v)[name]; ok {
		return &boundMethod{v, name, m}, true, nil
	}
	if strings.HasPrefix(name, "__") && isInternal(name) {
		return f.unsafeAttribute(v, name), true, nil
	}
	if o, ok := v.(AttrGetter); ok {
		return o.GetAttr(f.r.ctx, name)
	}
	return nil, false, nil
}

// isInternal reports whether name is an attribute that every Python object has. Templates may not read those.
func isInternal(name string) bool {
	switch name {
	case "__class__", "__doc__", "__init__", "__new__", "__dir__", "__eq__", "__ne__", "__hash__", "__repr__", "__str__",
		"__format__", "__getattribute__", "__setattr__", "__delattr__", "__reduce__", "__reduce_ex__", "__sizeof__",
		"__subclasshook__", "__init_subclass__", "__lt__", "__le__", "__gt__", "__ge__":
		return true
	}
	return false
}

// getattr evaluates v.name: the attribute, or else the item.
func (f *frame) getattr(v any, name string) (any, error) {
	if m, ok := v.(*value.Map); ok && f.r.env.methods.dict[name] == nil && !isInternal(name) { // by far the most common
		if item, ok := m.Get(name); ok {
			return item, nil
		}
	}
	if err := refused(v); err != nil {
		return nil, err
	}
	if attr, found, err := f.attribute(v, name); found || err != nil {
		return attr, err
	}
	if item, found, err := f.item(v, name); found || err != nil {
		return item, err
	}
	u := f.undefinedOf(v, name)
	u.dotted = true
	return u, nil
}

// getitem evaluates v[key]: the item, or else the attribute.
func (f *frame) getitem(v, key any) (any, error) {
	if err := refused(v); err != nil {
		return nil, err
	}
	if item, found, err := f.item(v, key); found || err != nil {
		return item, err
	}
	if name, ok := key.(string); ok {
		if attr, found, err := f.attribute(v, name); found || err != nil {
			return attr, err
		}
	}
	return f.undefinedOf(v, key), nil
}

// item evaluates Python's v[key]; found is false if Python raises an IndexError, a KeyError or a TypeError.
func (f *frame) item(v, key any) (item any, found bool, err error) {
	switch o := v.(type) {
	case *value.Map:
		if err := strict(key); err != nil {
			return nil, false, err
		}
		item, found, _ = o.GetKey(plainTuple(key))
		return item, found, nil
	case *value.List, value.Tuple, string, []byte:
		return itemAt(v, key)
	case *namedTuple:
		return itemAt(o.items, key)
	case ItemGetter:
		return o.GetItem(f.r.ctx, key)
	}
	return nil, false, nil
}

func itemAt(v, key any) (any, bool, error) {
	i, err := value.AsIndex(key)
	if err != nil {
		return nil, false, nil
	}
	item, err := value.At(v, i)
	return item, err == nil, nil
}
