package value

import (
	"bytes"
	"cmp"
	"fmt"
	"math/big"
)

// maxDepth is the depth to which nested values are compared and printed; a list can contain itself.
const maxDepth = 500

// Equal reports whether two values are equal, as Python's == does.
func Equal(a, b any) bool { return (&equality{}).equal(a, b, 0) }

// equality compares two values. A part that values share is compared for each of its occurrences, so a long comparison
// records which parts were equal.
type equality struct {
	compared int
	same     map[[2]any]bool
}

// patience is the number of parts that are compared before equal ones are recorded.
const patience = 4096

func (e *equality) equal(a, b any, depth int) bool {
	if depth > maxDepth {
		return false
	}
	switch x := a.(type) {
	case nil:
		return b == nil
	case string:
		y, ok := b.(string)
		return ok && x == y
	case []byte:
		y, ok := b.([]byte)
		return ok && bytes.Equal(x, y)
	case *List:
		y, ok := b.(*List)
		return ok && (x == y || e.once(x, y, func() bool { return e.items(x.Items, y.Items, depth) }))
	case Tuple:
		y, ok := b.(Tuple)
		return ok && e.items(x, y, depth)
	case *Map:
		y, ok := b.(*Map)
		return ok && (x == y || e.once(x, y, func() bool { return e.maps(x, y, depth) }))
	case Object:
		return a == b
	}
	if n, ok := compareNumbers(a, b); ok {
		return n == 0
	}
	return false
}

// once compares two lists or mappings, unless they are recorded as equal.
func (e *equality) once(x, y any, compare func() bool) bool {
	if e.compared++; e.compared < patience {
		return compare()
	}
	pair := [2]any{x, y}
	if e.same[pair] {
		return true
	}
	if !compare() {
		return false
	}
	if e.same == nil {
		e.same = map[[2]any]bool{}
	}
	e.same[pair] = true
	return true
}

func (e *equality) items(x, y []any, depth int) bool {
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		if !e.equal(x[i], y[i], depth+1) {
			return false
		}
	}
	return true
}

func (e *equality) maps(x, y *Map, depth int) bool {
	if x.Len() != y.Len() {
		return false
	}
	for k, v := range x.All() {
		w, ok, err := y.GetKey(k)
		if err != nil || !ok || !e.equal(v, w, depth+1) {
			return false
		}
	}
	return true
}

// OrderError is the error for two values without an order. Left and Right are Python's names of their types.
type OrderError struct{ Left, Right string }

func (e *OrderError) Error() string {
	return fmt.Sprintf("'<' not supported between instances of '%s' and '%s'", e.Left, e.Right)
}

// Compare orders two values as Python's < does: the result is negative, zero or positive. For values without an order,
// such as a number and a string, the error is an *OrderError.
func Compare(a, b any) (int, error) { return compare(a, b, 0) }

func compare(a, b any, depth int) (int, error) {
	if n, ok := compareNumbers(a, b); ok {
		return n, nil
	}
	if depth > maxDepth {
		return 0, fmt.Errorf("values are nested more than %d deep", maxDepth)
	}
	switch x := a.(type) {
	case string:
		if y, ok := b.(string); ok {
			return cmp.Compare(x, y), nil
		}
	case []byte:
		if y, ok := b.([]byte); ok {
			return bytes.Compare(x, y), nil
		}
	case *List:
		if y, ok := b.(*List); ok {
			return compareItems(x.Items, y.Items, depth)
		}
	case Tuple:
		if y, ok := b.(Tuple); ok {
			return compareItems(x, y, depth)
		}
	}
	return 0, &OrderError{Left: TypeName(a), Right: TypeName(b)}
}

func compareItems(x, y []any, depth int) (int, error) {
	for i := range min(len(x), len(y)) {
		if (&equality{}).equal(x[i], y[i], depth+1) {
			continue
		}
		return compare(x[i], y[i], depth+1)
	}
	return cmp.Compare(len(x), len(y)), nil
}

// compareNumbers compares bool, int and float with one another; ok is false for anything else and
// for a comparison with NaN.
func compareNumbers(a, b any) (n int, ok bool) {
	if x, ok := AsInt(a); ok {
		if y, ok := AsInt(b); ok {
			return cmp.Compare(x, y), true
		}
	}
	f, okF := a.(float64)
	g, okG := b.(float64)
	if okF && okG && f == f && g == g {
		return cmp.Compare(f, g), true
	}
	x, okX := asBigFloat(a)
	y, okY := asBigFloat(b)
	if !okX || !okY {
		return 0, false
	}
	return x.Cmp(y), true
}

// AsInt returns an int, or a bool as 0 or 1, as Python counts with bools; false for any other value.
func AsInt(v any) (int, bool) {
	switch v := v.(type) {
	case int:
		return v, true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

func asBigFloat(v any) (*big.Float, bool) {
	switch v := v.(type) {
	case float64:
		if v != v {
			return nil, false
		}
		return big.NewFloat(v), true
	case *big.Int:
		return new(big.Float).SetInt(v), true
	}
	if n, ok := AsInt(v); ok {
		return new(big.Float).SetInt64(int64(n)), true
	}
	return nil, false
}
