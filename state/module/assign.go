package module

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// Unmarshaler is a field that decodes its value itself.
type Unmarshaler interface{ UnmarshalSLS(v any) error }

func assign(field reflect.Value, v any) error {
	if u, ok := field.Addr().Interface().(Unmarshaler); ok {
		return u.UnmarshalSLS(v)
	}
	switch field.Interface().(type) {
	case []string:
		return assignStrings(field, v)
	case []any:
		field.Set(reflect.ValueOf(Items(v)))
		return nil
	case *value.Map:
		return assignAs[*value.Map](field, repacked(v), "a mapping")
	case *value.List:
		return assignAs[*value.List](field, v, "a list")
	}
	switch field.Kind() {
	case reflect.Interface:
		if v != nil {
			field.Set(reflect.ValueOf(v))
		}
		return nil
	case reflect.Pointer:
		if v == nil {
			return nil
		}
		field.Set(reflect.New(field.Type().Elem()))
		return assign(field.Elem(), v)
	}
	return assignScalar(field, v)
}

func assignScalar(field reflect.Value, v any) error {
	if v == nil {
		return nil // null keeps the default
	}
	switch field.Kind() {
	case reflect.String:
		s, err := text(v)
		field.SetString(s)
		return err
	case reflect.Bool:
		b, err := Boolean(v)
		field.SetBool(b)
		return err
	case reflect.Int:
		n, err := whole(v)
		field.SetInt(int64(n))
		return err
	case reflect.Float64:
		f, err := decimal(v)
		field.SetFloat(f)
		return err
	}
	return fmt.Errorf("a field of type %s takes no argument", field.Type())
}

func assignAs[T any](field reflect.Value, v any, want string) error {
	if v == nil {
		return nil
	}
	t, ok := v.(T)
	if !ok {
		return fmt.Errorf("%s was expected, not a %s", want, value.TypeName(v))
	}
	field.Set(reflect.ValueOf(t))
	return nil
}

// repacked merges a list of mappings into one mapping, since Salt accepts `- name: value` items for a mapping.
// It returns other values unchanged.
func repacked(v any) any {
	list, ok := v.(*value.List)
	if !ok || list.Len() == 0 {
		return v
	}
	all := value.NewMap()
	for _, item := range list.Items {
		m, ok := item.(*value.Map)
		if !ok {
			return v
		}
		all.Update(m)
	}
	return all
}

// Items returns the items of an argument that is a list; any other value is its only item.
func Items(v any) []any {
	switch v := v.(type) {
	case nil:
		return nil
	case *value.List:
		return v.Items
	case value.Tuple:
		return v
	}
	return []any{v}
}

// assignStrings sets a field from a list of strings or a single string.
func assignStrings(field reflect.Value, v any) error {
	if v == nil {
		return nil
	}
	items := Items(v)
	list := make([]string, 0, len(items))
	for _, item := range items {
		s, err := text(item)
		if err != nil {
			return err
		}
		list = append(list, s)
	}
	field.Set(reflect.ValueOf(list))
	return nil
}

// text returns the text of a string, number or boolean, or of a list with one of these.
func text(v any) (string, error) {
	if list, ok := v.(*value.List); ok && list.Len() == 1 {
		v = list.Items[0]
	}
	switch v.(type) {
	case string, int, float64, bool:
		return value.Str(v), nil
	}
	return "", fmt.Errorf("a string was expected, not a %s", value.TypeName(v))
}

// Boolean returns the boolean that a value of an SLS file denotes, such as True, yes or 1.
func Boolean(v any) (bool, error) {
	switch v := v.(type) {
	case bool:
		return v, nil
	case int:
		return v != 0, nil
	case string:
		switch strings.ToLower(v) {
		case "true", "yes", "on", "1":
			return true, nil
		case "false", "no", "off", "0", "none", "":
			return false, nil
		}
	}
	return false, fmt.Errorf("true or false was expected, not %s", value.Repr(v))
}

func whole(v any) (int, error) {
	switch v := v.(type) {
	case int:
		return v, nil
	case string:
		if n, err := strconv.Atoi(strings.TrimSpace(v)); err == nil {
			return n, nil
		}
	case float64:
		if v == float64(int(v)) {
			return int(v), nil
		}
	}
	return 0, fmt.Errorf("a whole number was expected, not %s", value.Repr(v))
}

func decimal(v any) (float64, error) {
	switch v := v.(type) {
	case float64:
		return v, nil
	case int:
		return float64(v), nil
	case string:
		if f, err := strconv.ParseFloat(strings.TrimSpace(v), 64); err == nil {
			return f, nil
		}
	}
	return 0, fmt.Errorf("a number was expected, not %s", value.Repr(v))
}
