// Package value defines the values of SLS files, with the semantics of Python.
//
// Authors of SLS files use Jinja and YAML with Python's values: mappings keep their order, lists and mappings are
// references that a `do` statement may change, True equals 1, and a mapping prints as {'a': 1}. A value is one of
//
//	nil                None
//	bool               bool
//	int, *big.Int      int (*big.Int only where int is too small)
//	float64            float
//	string             str
//	[]byte             bytes
//	*List              list, a reference
//	Tuple              tuple
//	*Map               dict, ordered, a reference
//
// or a value of another package that implements Object.
package value

import (
	"fmt"
	"math/big"
)

// List is a Python list: a reference, so that two names can share one.
type List struct{ Items []any }

// NewList returns a list of the given items.
func NewList(items ...any) *List { return &List{Items: items} }

// Strings returns a list of strings.
func Strings(items ...string) *List {
	l := &List{Items: make([]any, len(items))}
	for i, s := range items {
		l.Items[i] = s
	}
	return l
}

// Append adds an item at the end.
func (l *List) Append(item any) { l.Items = append(l.Items, item) }

// Len returns the number of items.
func (l *List) Len() int { return len(l.Items) }

// Tuple is a Python tuple; callers must not change one.
type Tuple []any

// Object is a value of another package, such as a macro or an undefined variable.
type Object interface {
	PyType() string // as Python's type(x).__name__
	PyRepr() string
	PyTruth() bool
}

// TypeName returns Python's name of the type of a value.
func TypeName(v any) string {
	switch v := v.(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case int, *big.Int:
		return "int"
	case float64:
		return "float"
	case string:
		return "str"
	case []byte:
		return "bytes"
	case *List:
		return "list"
	case Tuple:
		return "tuple"
	case *Map:
		return "dict"
	case Object:
		return v.PyType()
	}
	return fmt.Sprintf("%T", v)
}

// Truth returns the truth of a value, as Python's bool(v) does.
func Truth(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case int:
		return v != 0
	case *big.Int:
		return v.Sign() != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case []byte:
		return len(v) > 0
	case *List:
		return len(v.Items) > 0
	case Tuple:
		return len(v) > 0
	case *Map:
		return v.Len() > 0
	case Object:
		return v.PyTruth()
	}
	return true
}

// Copy implements Python's copy.deepcopy: lists, tuples and mappings are copied, and values that are shared inside v
// are shared inside the copy.
func Copy(v any) any { return copier{}.copy(v) }

// Plainly marks all mappings inside v as plain dicts and returns v.
func Plainly(v any) any {
	switch v := v.(type) {
	case *List:
		for _, item := range v.Items {
			Plainly(item)
		}
	case Tuple:
		for _, item := range v {
			Plainly(item)
		}
	case *Map:
		if v.plain { // so are all inside it; shared values are not walked again
			break
		}
		v.plain = true
		for _, item := range v.All() {
			Plainly(item)
		}
	}
	return v
}

type copier map[any]any

func (c copier) copy(v any) any {
	switch v := v.(type) {
	case *List:
		if done, ok := c[v]; ok {
			return done
		}
		l := &List{Items: make([]any, len(v.Items))}
		c[v] = l
		for i, item := range v.Items {
			l.Items[i] = c.copy(item)
		}
		return l
	case Tuple:
		t := make(Tuple, len(v))
		for i, item := range v {
			t[i] = c.copy(item)
		}
		return t
	case *Map:
		if done, ok := c[v]; ok {
			return done
		}
		m := MakeMap(v.Len())
		m.plain = v.plain
		c[v] = m
		for _, e := range v.live() {
			m.put(e.key, c.copy(e.value)) // deferred values stay deferred in the copy
		}
		return m
	}
	return v
}
