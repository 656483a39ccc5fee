package redact

import (
	"reflect"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// Each replaces every string that can be reached from a pointer to a struct, slice or map: in exported fields,
// elements, values, and SLS data, which is copied. It does not change keys of Go maps, nor the fields of the outermost
// struct that keep names.
func Each(pointer any, change func(string) string, keep ...string) {
	w := walker{change: change, keep: map[string]bool{}}
	for _, field := range keep {
		w.keep[field] = true
	}
	w.walk(reflect.ValueOf(pointer))
}

type walker struct {
	change func(string) string
	keep   map[string]bool // names of fields of the outermost struct
	deep   bool
}

func (w *walker) walk(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if v.CanSet() {
			v.SetString(w.change(v.String()))
		}
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		if data, ok := v.Interface().(*value.Map); ok {
			w.set(v, w.data(data))
			return
		}
		w.walk(v.Elem())
	case reflect.Interface:
		if !v.IsNil() {
			w.set(v, w.data(v.Interface()))
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			w.walk(v.Index(i))
		}
	case reflect.Map:
		w.entries(v)
	case reflect.Struct:
		w.fields(v)
	}
}

func (w *walker) set(v reflect.Value, to any) {
	if v.CanSet() && to != nil {
		v.Set(reflect.ValueOf(to))
	}
}

func (w *walker) fields(v reflect.Value) {
	outermost := !w.deep
	w.deep = true
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if field.IsExported() && !(outermost && w.keep[field.Name]) {
			w.walk(v.Field(i))
		}
	}
}

// entries replaces the values of a map, which cannot be set in place.
func (w *walker) entries(v reflect.Value) {
	for _, key := range v.MapKeys() {
		item := reflect.New(v.Type().Elem()).Elem()
		item.Set(v.MapIndex(key))
		w.walk(item)
		v.SetMapIndex(key, item)
	}
}

// data returns SLS data with its strings and bytes replaced.
func (w *walker) data(v any) any {
	return rewrite(v, func(leaf any) any {
		switch v := leaf.(type) {
		case string:
			return w.change(v)
		case []byte:
			return []byte(w.change(string(v)))
		}
		return leaf
	})
}

// rewrite returns a copy of SLS data in which leaf has replaced everything that is not a map, a list or a tuple,
// including keys of maps.
func rewrite(v any, leaf func(any) any) any {
	switch v := v.(type) {
	case *value.Map:
		if v == nil {
			return v
		}
		m := value.NewMap()
		if v.IsPlain() {
			m.Plain()
		}
		for key, item := range v.All() {
			written := rewrite(key, leaf)
			if text, ok := written.(string); ok { // keys that each hold a secret become the same
				written = m.Unused(text)
			}
			_ = m.SetKey(written, rewrite(item, leaf)) // it cannot fail: a text is a valid key
		}
		return m
	case *value.List:
		return &value.List{Items: rewriteAll(v.Items, leaf)}
	case value.Tuple:
		return value.Tuple(rewriteAll(v, leaf))
	}
	return leaf(v)
}

func rewriteAll(items []any, leaf func(any) any) []any {
	list := make([]any, len(items))
	for i, item := range items {
		list[i] = rewrite(item, leaf)
	}
	return list
}
