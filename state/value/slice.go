package value

import (
	"math"
	"math/big"
	"slices"
	"unicode/utf8"
)

// Len returns the length of a plain container, as Python's len(v) does; ok is false for anything else.
func Len(v any) (n int, ok bool) {
	switch v := v.(type) {
	case string:
		return utf8.RuneCountInString(v), true
	case []byte:
		return len(v), true
	case *List:
		return len(v.Items), true
	case Tuple:
		return len(v), true
	case *Map:
		return v.Len(), true
	}
	return 0, false
}

// At returns the item i of a string, bytes, list or tuple, as Python's v[i] does; a negative i counts from the end.
func At(v any, i int) (any, error) {
	n, ok := Len(v)
	if i < 0 {
		i += n
	}
	switch v := v.(type) {
	case string:
		if i >= 0 && i < n {
			return runeAt(v, i), nil
		}
		return nil, Raise("IndexError", "string index out of range")
	case []byte:
		if i >= 0 && i < n {
			return int(v[i]), nil
		}
	case *List:
		if i >= 0 && i < n {
			return v.Items[i], nil
		}
	case Tuple:
		if i >= 0 && i < n {
			return v[i], nil
		}
	default:
		return nil, typeError("'%s' object is not subscriptable", TypeName(v))
	}
	if !ok {
		return nil, typeError("'%s' object is not subscriptable", TypeName(v))
	}
	return nil, Raise("IndexError", "%s index out of range", TypeName(v))
}

func runeAt(s string, i int) string {
	if isASCII(s) {
		return s[i : i+1]
	}
	for at := range s {
		if i == 0 {
			_, size := utf8.DecodeRuneInString(s[at:])
			return s[at : at+size]
		}
		i--
	}
	return ""
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// Range is the part of a sequence that a slice selects: Count items from Start on, Step apart.
type Range struct{ Start, Step, Count int }

// Bounds computes the Range of start:stop:step, each nil or an int, for a sequence of n items.
func Bounds(start, stop, step any, n int) (Range, error) {
	by, err := sliceIndex(step, 1)
	if err != nil {
		return Range{}, err
	}
	if by == 0 {
		return Range{}, valueError("slice step cannot be zero")
	}
	first, last := 0, n
	if by < 0 {
		first, last = n-1, -1
	}
	from, err := clampIndex(start, first, n, by < 0)
	if err != nil {
		return Range{}, err
	}
	to, err := clampIndex(stop, last, n, by < 0)
	if err != nil {
		return Range{}, err
	}
	r := Range{Start: from, Step: by}
	switch {
	case by > 0 && from < to:
		r.Count = (to-from-1)/by + 1
	case by < 0 && from > to:
		r.Count = (to-from+1)/by + 1
	}
	return r, nil
}

func sliceIndex(v any, otherwise int) (int, error) {
	switch v := v.(type) {
	case nil:
		return otherwise, nil
	case int:
		return max(v, -math.MaxInt), nil
	case bool:
		n, _ := AsInt(v)
		return n, nil
	case *big.Int:
		return v.Sign() * math.MaxInt, nil
	}
	return 0, typeError("slice indices must be integers or None or have an __index__ method")
}

// clampIndex moves an index into the sequence; counted backwards, one before the start is allowed.
func clampIndex(v any, otherwise, n int, backwards bool) (int, error) {
	i, err := sliceIndex(v, otherwise)
	if err != nil || v == nil {
		return i, err
	}
	low, high := 0, n
	if backwards {
		low, high = -1, n-1
	}
	if i < 0 {
		i += n
	}
	return max(low, min(i, high)), nil
}

// Slice implements Python's v[start:stop:step] for a string, bytes, list or tuple.
func Slice(v, start, stop, step any) (any, error) {
	n, ok := Len(v)
	if _, isMap := v.(*Map); isMap {
		return nil, typeError("unhashable type: 'slice'")
	}
	if !ok {
		return nil, typeError("'%s' object is not subscriptable", TypeName(v))
	}
	r, err := Bounds(start, stop, step, n)
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case string:
		return sliceString(v, n, r), nil
	case []byte:
		return pick(v, r), nil
	case *List:
		return &List{Items: pick(v.Items, r)}, nil
	case Tuple:
		return Tuple(pick(v, r)), nil
	}
	return nil, typeError("'%s' object is not subscriptable", TypeName(v))
}

func sliceString(s string, n int, r Range) string {
	if n != len(s) {
		return string(pick([]rune(s), r))
	}
	if r.Step == 1 {
		return s[r.Start : r.Start+r.Count]
	}
	return string(pick([]byte(s), r))
}

func pick[T any](items []T, r Range) []T {
	if r.Step == 1 && r.Count > 0 {
		return slices.Clone(items[r.Start : r.Start+r.Count])
	}
	out := make([]T, r.Count)
	for i := range out {
		out[i] = items[r.Start+i*r.Step]
	}
	return out
}
