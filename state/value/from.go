package value

import (
	"fmt"
	"maps"
	"slices"
)

// From converts plain Go data, such as facts and decoded documents, to values. Go maps have no order, so their keys are
// sorted. It panics for an unknown type, which is a mistake of the caller.
func From(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := NewMap()
		for _, k := range slices.Sorted(maps.Keys(v)) {
			m.Set(k, From(v[k]))
		}
		return m
	case map[string]string:
		m := NewMap()
		for _, k := range slices.Sorted(maps.Keys(v)) {
			m.Set(k, v[k])
		}
		return m
	case []any:
		l := &List{Items: make([]any, len(v))}
		for i, item := range v {
			l.Items[i] = From(item)
		}
		return l
	case []string:
		return Strings(v...)
	case int64:
		return int(v)
	case uint64:
		return int(v)
	case nil, bool, int, float64, string, []byte, *List, Tuple, *Map, Object:
		return v
	}
	panic(fmt.Sprintf("value.From: no value for a %T", v))
}
