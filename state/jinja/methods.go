package jinja

import (
	"math"
	"math/big"

	"github.com/corpus-agent/corpus-agent/state/value"
)

func dictMethod(fn func(c *Call, m *value.Map) (any, error), params ...Param) *method {
	return &method{params: params, call: func(c *Call, self any) (any, error) { return fn(c, self.(*value.Map)) }}
}

func dictMethods() map[string]*method {
	return map[string]*method{
		"clear":  dictMethod(func(_ *Call, m *value.Map) (any, error) { m.Clear(); return nil, nil }),
		"copy":   dictMethod(func(_ *Call, m *value.Map) (any, error) { return m.Clone(), nil }),
		"items":  dictMethod(func(_ *Call, m *value.Map) (any, error) { return itemsOf(m), nil }),
		"keys":   dictMethod(func(_ *Call, m *value.Map) (any, error) { return keysOf(m), nil }),
		"values": dictMethod(func(_ *Call, m *value.Map) (any, error) { return valuesOf(m), nil }),

		"get":        dictMethod(dictGet, Arg("key"), Opt("default", nil)),
		"setdefault": dictMethod(dictSetDefault, Arg("key"), Opt("default", nil)),
		"pop":        dictMethod(dictPop, Arg("key"), Rest("default")),
		"popitem":    dictMethod(dictPopItem),
		"update":     {raw: true, call: dictUpdate},
		"fromkeys":   dictMethod(dictFromKeys, Arg("iterable"), Opt("value", nil)),
	}
}

// key returns an argument used as a key of a dict.
func (c *Call) key(i int) (any, error) {
	if err := strict(c.Args[i]); err != nil {
		return nil, err
	}
	return plainTuple(c.Args[i]), nil
}

func dictGet(c *Call, m *value.Map) (any, error) {
	k, err := c.key(0)
	if err != nil {
		return nil, err
	}
	v, found, err := m.GetKey(k)
	if !found {
		v = c.Args[1]
	}
	return v, err
}

func dictSetDefault(c *Call, m *value.Map) (any, error) {
	k, err := c.key(0)
	if err != nil {
		return nil, err
	}
	if _, err := m.Insert(k, c.Args[1]); err != nil {
		return nil, err
	}
	v, _, _ := m.GetKey(k)
	return v, c.f.r.charge(32)
}

func dictPop(c *Call, m *value.Map) (any, error) {
	k, err := c.key(0)
	if err != nil {
		return nil, err
	}
	v, found, err := m.GetKey(k)
	fallback := c.Args[1].(value.Tuple)
	switch {
	case err != nil:
		return nil, err
	case !found && len(fallback) > 0:
		return fallback[0], nil
	case !found:
		return nil, value.Raise("KeyError", "%s", value.Repr(k))
	}
	_, err = m.DeleteKey(k)
	return v, err
}

func dictPopItem(_ *Call, m *value.Map) (any, error) {
	keys := m.Keys()
	if len(keys) == 0 {
		return nil, value.Raise("KeyError", "'popitem(): dictionary is empty'")
	}
	k := keys[len(keys)-1]
	v, _, _ := m.GetKey(k)
	_, err := m.DeleteKey(k)
	return value.Tuple{k, v}, err
}

func dictUpdate(c *Call, self any) (any, error) {
	m := self.(*value.Map)
	if len(c.Args) > 1 {
		return nil, typeError("update expected at most 1 argument, got " + itoa(len(c.Args)))
	}
	if len(c.Args) == 1 {
		if err := c.f.updateMap(m, c.Args[0]); err != nil {
			return nil, err
		}
	}
	m.Update(c.Kwargs)
	return nil, c.f.r.charge(32 * c.Kwargs.Len())
}

// updateMap sets the keys of another mapping, or of pairs.
func (f *frame) updateMap(m *value.Map, from any) error {
	if other, ok := from.(*value.Map); ok {
		if other != m {
			m.Update(other)
		}
		return f.r.charge(32 * other.Len())
	}
	pairs, err := f.listOf(from)
	if err != nil {
		return err
	}
	for i, p := range pairs {
		if err := f.setPair(m, i, p); err != nil {
			return err
		}
	}
	return f.r.charge(32 * len(pairs))
}

// setPair sets a key of a map to a value: the two items of pair, which is element i of the argument of update.
func (f *frame) setPair(m *value.Map, i int, pair any) error {
	parts, err := f.listOf(pair)
	if err != nil {
		return typeError("cannot convert dictionary update sequence element #" + itoa(i) + " to a sequence")
	}
	if len(parts) != 2 {
		return value.Raise("ValueError", "dictionary update sequence element #%d has length %d; 2 is required", i,
			len(parts))
	}
	return m.SetKey(plainTuple(parts[0]), parts[1])
}

func dictFromKeys(c *Call, _ *value.Map) (any, error) {
	keys, err := c.Items(0)
	if err != nil {
		return nil, err
	}
	m := value.NewMap()
	for _, k := range keys {
		if err := m.SetKey(plainTuple(k), c.Args[1]); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func intMethods() map[string]*method {
	return map[string]*method{
		"bit_length": {call: func(_ *Call, self any) (any, error) {
			n, err := value.Pos(self)
			if i, ok := n.(int); ok {
				return big.NewInt(int64(i)).BitLen(), err
			}
			return n.(*big.Int).BitLen(), err
		}},
	}
}

func floatMethods() map[string]*method {
	return map[string]*method{
		"is_integer": {call: func(_ *Call, self any) (any, error) {
			f := self.(float64)
			return f == math.Trunc(f) && !math.IsInf(f, 0), nil
		}},
		"hex": {call: func(_ *Call, self any) (any, error) { return hexFloat(self.(float64)), nil }},
	}
}
