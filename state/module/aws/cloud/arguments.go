package cloud

import (
	"slices"

	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Int32s converts an optional number to the type of the SDK. It returns nil for nil.
func Int32s(n *int) *int32 {
	if n == nil {
		return nil
	}
	v := int32(*n) //nolint:gosec // AWS has no larger numbers
	return &v
}

// Apart returns the items to add to old, and those to drop from it, so that it has the items of want.
func Apart(old, want []string) (add, drop []string) {
	for _, v := range want {
		if !slices.Contains(old, v) {
			add = append(add, v)
		}
	}
	for _, v := range old {
		if !slices.Contains(want, v) {
			drop = append(drop, v)
		}
	}
	return add, drop
}

// Optional returns a text in the form of the SDK: a pointer to it, or nil if it is empty.
func Optional(v string) *string {
	if v == "" {
		return nil
	}
	return &v
}

// Put sets a field of a mapping unless the value is nil or empty.
func Put(m *value.Map, name string, v *string) {
	if v != nil && *v != "" {
		m.Set(name, *v)
	}
}

// MapOf returns an argument as a mapping, or nil if it is neither a mapping nor a list.
func MapOf(v any) *value.Map {
	switch v := v.(type) {
	case *value.Map:
		return v
	case *value.List: // a list of mappings is merged into one mapping
		m := value.NewMap()
		for _, item := range v.Items {
			if one, ok := item.(*value.Map); ok {
				m.Update(one)
			}
		}
		return m
	}
	return nil
}

// Texts returns the items of an argument as text.
func Texts(v any) (all []string) {
	for _, item := range module.Items(v) {
		all = append(all, value.Str(item))
	}
	return all
}

// Sorted returns a sorted list of texts without duplicates.
func Sorted(all []string) *value.List {
	all = slices.Clone(all)
	slices.Sort(all)
	return value.Strings(slices.Compact(all)...)
}

// Text returns a field of a mapping as text, or "" if it is missing or None.
func Text(m *value.Map, name string) string {
	v := m.Value(name)
	if v == nil {
		return ""
	}
	return value.Str(v)
}

// Number returns a field of a mapping as a number, and reports whether it is one.
func Number(m *value.Map, name string) (int32, bool) {
	v, ok := m.Get(name)
	if !ok || v == nil {
		return 0, false
	}
	n, err := value.ToInt(v)
	i, is := n.(int)
	return int32(i), err == nil && is //nolint:gosec // AWS has no larger numbers
}
