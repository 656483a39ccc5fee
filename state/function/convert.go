package function

import (
	"context"
	"fmt"
	"reflect"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// fits returns an error if the Go function cannot be called with the parameters of the signature.
func (f *Function) fits() error {
	t := f.do.Type()
	if t.NumOut() == 0 || t.NumOut() > 2 || t.NumOut() == 2 && t.Out(1) != reflect.TypeFor[error]() {
		return fmt.Errorf("%s does not return a value, or a value and an error", t)
	}
	first := leading(t)
	if takesAll(t, first) {
		return nil
	}
	if t.NumIn()-first != len(f.parameters) {
		return fmt.Errorf("%s does not have the parameters (%s)", t, f.signature)
	}
	for i, p := range f.parameters {
		if !p.accepts(t.In(first + i)) {
			return fmt.Errorf("parameter %s of %s cannot be a %s", p.Name, t, t.In(first+i))
		}
	}
	return nil
}

// leading returns the number of parameters of a Go function that the caller does not pass, such as a context.
func leading(t reflect.Type) int {
	if t.NumIn() > 0 && t.In(0) == reflect.TypeFor[context.Context]() {
		return 1
	}
	return 0
}

func takesAll(t reflect.Type, first int) bool {
	return t.NumIn() == first+1 && t.In(first) == reflect.TypeFor[Arguments]()
}

// accepts reports whether a Go parameter of a type can receive the argument.
func (p Parameter) accepts(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[[]any]():
		return p.Kind == Rest
	case reflect.TypeFor[[]string]():
		return p.Kind != Keywords
	case reflect.TypeFor[*value.Map]():
		return p.Kind != Rest
	case reflect.TypeFor[any](), reflect.TypeFor[string](), reflect.TypeFor[bool](), reflect.TypeFor[int](),
		reflect.TypeFor[float64](),
		reflect.TypeFor[*string](), reflect.TypeFor[*int](), reflect.TypeFor[*value.List]():
		return p.Kind == Plain || p.Kind == Named
	}
	return false
}

// arguments converts bound values to the arguments of the Go function.
func (f *Function) arguments(ctx context.Context, parameters []Parameter, bound []any) ([]reflect.Value, error) {
	t := f.do.Type()
	in := make([]reflect.Value, 0, t.NumIn())
	first := leading(t)
	if first > 0 {
		in = append(in, reflect.ValueOf(ctx))
	}
	if takesAll(t, first) {
		all := value.MakeMap(len(bound))
		for i, p := range parameters {
			all.Set(p.Name, bound[i])
		}
		return append(in, reflect.ValueOf(Arguments{all})), nil
	}
	for i, p := range parameters {
		v, err := convert(bound[i], t.In(first+i))
		if err != nil && !(bound[i] == nil && p.Optional && p.Default == nil) {
			return nil, TypeError("argument %s: %v", p.Name, err)
		}
		in = append(in, v)
	}
	return in, nil
}

// convert converts a value to a Go type that Parameter.accepts. If that is impossible, it returns the type's zero
// value and an error.
func convert(v any, t reflect.Type) (reflect.Value, error) {
	var converted any
	var err error
	switch t {
	case reflect.TypeFor[string]():
		converted, err = Text(v)
	case reflect.TypeFor[bool]():
		converted = value.Truth(v)
	case reflect.TypeFor[int]():
		converted, err = Int(v)
	case reflect.TypeFor[float64]():
		converted, err = value.ToFloat(v)
	case reflect.TypeFor[*string]():
		converted, err = pointer(v, Text)
	case reflect.TypeFor[*int]():
		converted, err = pointer(v, Int)
	case reflect.TypeFor[[]string]():
		converted, err = Texts(v)
	case reflect.TypeFor[*value.List]():
		converted, err = List(v)
	case reflect.TypeFor[*value.Map]():
		converted, err = mapping(v)
	default:
		if v == nil {
			return reflect.Zero(t), nil
		}
		return reflect.ValueOf(v), nil
	}
	return reflect.ValueOf(converted), err
}

// Text returns v as a string. It accepts the numbers and dates that YAML makes of unquoted text.
func Text(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case int, float64, bool:
		return value.Str(v), nil
	case []byte:
		return string(v), nil
	}
	return "", Expected("a string", v)
}

// Int returns v as an int. It accepts a text or a float that is a whole number.
func Int(v any) (int, error) {
	switch v := v.(type) {
	case int:
		return v, nil
	case bool, float64, string:
		if n, err := value.ToInt(v); err == nil {
			if n, ok := n.(int); ok {
				return n, nil
			}
		}
	}
	return 0, Expected("a whole number", v)
}

func pointer[T any](v any, of func(any) (T, error)) (*T, error) {
	if v == nil {
		return nil, nil
	}
	t, err := of(v)
	return &t, err
}

// Texts returns v as strings. A single text is a list with one item.
func Texts(v any) ([]string, error) {
	items := []any{v}
	switch v := v.(type) {
	case nil:
		return nil, nil
	case []any:
		items = v
	case *value.List:
		items = v.Items
	case value.Tuple:
		items = v
	}
	list := make([]string, len(items))
	for i, item := range items {
		s, err := Text(item)
		if err != nil {
			return nil, err
		}
		list[i] = s
	}
	return list, nil
}

// List returns v, a list or a tuple, as a list.
func List(v any) (*value.List, error) {
	switch v := v.(type) {
	case *value.List:
		return v, nil
	case value.Tuple:
		return &value.List{Items: v}, nil
	}
	return nil, Expected("a list", v)
}

func mapping(v any) (*value.Map, error) {
	if m, ok := v.(*value.Map); ok {
		return m, nil
	}
	return nil, Expected("a mapping", v)
}

// Expected returns an error that says what was expected in the place of v. It does not contain the value, which may
// be a secret.
func Expected(what string, v any) error {
	if v == nil {
		return fmt.Errorf("%s was expected, not None", what)
	}
	return fmt.Errorf("%s was expected, not a %s", what, value.TypeName(v))
}

// Result converts a result of a Go function to a value of templates.
func Result(v any) any {
	switch v := v.(type) {
	case *value.Map:
		if v == nil {
			return nil
		}
	case *value.List:
		if v == nil {
			return nil
		}
	case []string:
		return value.Strings(v...)
	case *string:
		if v == nil {
			return nil
		}
		return *v
	}
	return v
}
