package value

import (
	"fmt"
	"math"
)

// printableDepth is the nesting from which Printable prints values. JSON documents may nest jsonDepth deep, and what
// the value is a part of has some levels of its own.
const printableDepth = jsonDepth / 2

// Printable returns a copy of SLS data that JSON can represent. What JSON does not have is in the notation of Python:
// keys such as bytes and tuples, bytes, objects, floats that are not finite, and what is nested more than 500 levels
// deep.
func Printable(v any) any { return written(v, 0) }

func written(v any, depth int) any {
	if depth > printableDepth {
		return Repr(v)
	}
	switch v := v.(type) {
	case *Map:
		return writtenMap(v, depth)
	case *List:
		return &List{Items: writtenItems(v.Items, depth)}
	case Tuple:
		return Tuple(writtenItems(v, depth))
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return Repr(v)
		}
	case []byte, Object:
		return Repr(v)
	}
	return v
}

func writtenMap(from *Map, depth int) *Map {
	if from == nil {
		return nil
	}
	m := &Map{plain: from.plain}
	for key, item := range from.All() {
		if _, err := JSONKey(key); err != nil {
			key = Repr(key)
		}
		if name, ok := key.(string); ok {
			key = m.Unused(name)
		}
		_ = m.SetKey(key, written(item, depth+1)) // a key of a mapping is a valid key
	}
	return m
}

func writtenItems(items []any, depth int) []any {
	list := make([]any, len(items))
	for i, item := range items {
		list[i] = written(item, depth+1)
	}
	return list
}

// Unused returns the name, with a number behind it if the mapping has the name already.
func (m *Map) Unused(name string) string {
	unused := name
	for n := 2; m.Has(unused); n++ {
		unused = fmt.Sprintf("%s (%d)", name, n)
	}
	return unused
}
