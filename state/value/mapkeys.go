package value

import (
	"fmt"
	"math"
	"math/big"
	"strings"
)

// KeyError is the error for a value that cannot be a key of a mapping.
type KeyError struct{ Type string }

func (e *KeyError) Error() string { return fmt.Sprintf("unhashable type: '%s'", e.Type) }

// normal returns the form of a key for comparisons: Python's 1, 1.0 and True are one key.
func normal(key any) (any, error) {
	switch k := key.(type) {
	case string, int, nil:
		return k, nil
	case bool:
		if k {
			return 1, nil
		}
		return 0, nil
	case float64:
		if k == math.Trunc(k) && math.Abs(k) < 1<<53 {
			return int(k), nil
		}
		return k, nil
	case *big.Int:
		return bigKey(k.String()), nil
	case []byte:
		return bytesKey(k), nil
	case Tuple:
		return tupleNormal(k)
	case *List, *Map:
		return nil, &KeyError{Type: TypeName(key)}
	case Object:
		return k, nil
	}
	return nil, &KeyError{Type: TypeName(key)}
}

type (
	bigKey   string
	bytesKey string
	tupleKey string
)

func tupleNormal(t Tuple) (any, error) {
	var b strings.Builder
	for _, item := range t {
		n, err := normal(item)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%T:%d:%v,", n, len(fmt.Sprint(n)), n)
	}
	return tupleKey(b.String()), nil
}

func (m *Map) find(norm any) int {
	if m == nil {
		return -1
	}
	if m.index != nil {
		if i, ok := m.index[norm]; ok {
			return i
		}
		return -1
	}
	if name, ok := norm.(string); ok {
		return m.findName(name)
	}
	for i := range m.entries {
		if n, err := normal(m.entries[i].key); err == nil && n == norm {
			return i
		}
	}
	return -1
}

func (m *Map) findName(name string) int {
	if m == nil {
		return -1
	}
	if m.index != nil {
		if i, ok := m.index[name]; ok {
			return i
		}
		return -1
	}
	for i := range m.entries {
		if k, ok := m.entries[i].key.(string); ok && k == name {
			return i
		}
	}
	return -1
}

// GetKey does the same as Get for a key of any type. For a list or mapping as key, the error is a *KeyError.
func (m *Map) GetKey(key any) (any, bool, error) {
	norm, err := normal(key)
	if err != nil {
		return nil, false, err
	}
	if i := m.find(norm); i >= 0 {
		return m.entries[i].known(), true, nil
	}
	return nil, false, nil
}

// SetKey does the same as Set for a key of any type. For a list or mapping as key, the error is a *KeyError.
func (m *Map) SetKey(key, v any) error {
	norm, err := normal(key)
	if err != nil {
		return err
	}
	m.set(key, norm, v)
	return nil
}

// Insert sets a key that does not exist yet. If it exists, Insert keeps its value and taken is true. For a list or
// mapping as key, the error is a *KeyError.
func (m *Map) Insert(key, v any) (taken bool, err error) {
	norm, err := normal(key)
	if err != nil || m.find(norm) >= 0 {
		return err == nil, err
	}
	m.add(key, norm, v)
	return false, nil
}

// DeleteKey does the same as Delete for a key of any type. For a list or mapping as key, the error is a *KeyError.
func (m *Map) DeleteKey(key any) (bool, error) {
	norm, err := normal(key)
	if err != nil {
		return false, err
	}
	return m.remove(norm), nil
}
