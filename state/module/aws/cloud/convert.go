package cloud

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// IntoSDK decodes an argument into a type of the SDK. Its fields have the names of AWS's API, and an unknown field is
// an error.
func IntoSDK(argument string, v, to any) error {
	text, err := value.Dumps(v, value.JSONOptions{})
	if err != nil {
		return err
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		text := strings.TrimPrefix(err.Error(), "json: ")
		if bad := (*json.UnmarshalTypeError)(nil); errors.As(err, &bad) {
			got, want := plainKind(bad.Value), plainKind(bad.Type.Kind().String())
			text = fmt.Sprintf("%s is a %s, and a %s was expected", cmp.Or(bad.Field, "it"), got, want)
			if got == want {
				text = fmt.Sprintf("%s is the %s, which is too large or not whole", cmp.Or(bad.Field, "it"), bad.Value)
			}
		}
		return diag.Amazon.Hint(fmt.Errorf("%s: %s", argument, text), "its fields have the names of AWS's API")
	}
	return nil
}

// plainKind returns the word for a kind of value of JSON or of Go.
func plainKind(kind string) string {
	kind, _, _ = strings.Cut(kind, " ")
	switch strings.TrimRight(kind, "0123456789") {
	case "array", "slice":
		return "list"
	case "object", "struct", "map", "ptr":
		return "mapping"
	case "string":
		return "text"
	case "bool":
		return "boolean"
	}
	return "number"
}

// FromSDK converts a value of the SDK to the form of an argument: without empty fields, and with sorted lists.
func FromSDK(v any) (any, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	plain, err := value.FromJSON(bytes.TrimSpace(data))
	return Filled(plain), err
}

// Filled returns a copy of a value without its empty items and with its lists sorted, as their order has no meaning.
func Filled(v any) any {
	switch v := v.(type) {
	case *value.Map:
		m := value.NewMap()
		for key, item := range v.All() {
			if item = Filled(item); !Empty(item) {
				m.Set(value.Str(key), item)
			}
		}
		return m
	case *value.List:
		all := value.NewList()
		for _, item := range v.Items {
			if item = Filled(item); !Empty(item) {
				all.Append(item)
			}
		}
		slices.SortStableFunc(all.Items, func(a, b any) int { return strings.Compare(value.Repr(a), value.Repr(b)) })
		return all
	}
	return v
}

// Empty reports whether a value is None, an empty text, an empty mapping or an empty list.
func Empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case *value.Map:
		return v.Len() == 0
	case *value.List:
		return v.Len() == 0
	}
	return false
}
