package statetest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// field is an argument of a function.
type field struct {
	name string
	of   reflect.Type
}

// fieldsOf lists the arguments of a function as module.Decode finds them.
func fieldsOf(r module.Resource) []field {
	var fields []field
	var collect func(t reflect.Type)
	collect = func(t reflect.Type) {
		for i := range t.NumField() {
			f := t.Field(i)
			tag, ok := f.Tag.Lookup("sls")
			name, _, _ := strings.Cut(tag, ",")
			switch {
			case ok && !strings.HasPrefix(name, "__"):
				fields = append(fields, field{name, f.Type})
			case !ok && f.Anonymous && f.Type.Kind() == reflect.Struct:
				collect(f.Type)
			}
		}
	}
	collect(reflect.TypeOf(r).Elem())
	return fields
}

// arguments tests a function with invalid arguments.
func arguments(t *testing.T, function string, resource func() module.Resource) {
	fields := fieldsOf(resource())
	open := slices.ContainsFunc(fields, func(f field) bool { return f.name == "*" })
	for _, f := range fields {
		if f.name == "*" {
			continue
		}
		if !open && f.name != "name" && len(f.name) > 3 {
			misspelled(t, function, resource(), f.name)
		}
		if wrong, ok := wrongFor(f.of); ok {
			mistyped(t, function, resource(), f.name, wrong)
		}
	}
}

// misspelled passes an argument with an extra letter. The warning must suggest the correct argument.
func misspelled(t *testing.T, function string, r module.Resource, name string) {
	typed := name + "q"
	warnings, _ := module.Decode(r, call(function, value.NewMap("name", "/x", typed, "1")))
	text := fmt.Sprint(warnings)
	if !strings.Contains(text, typed) || !strings.Contains(text, "did you mean") {
		t.Errorf("%s with %s instead of %s warns %q; want both names", function, typed, name,
			warnings)
	}
}

// mistyped passes a value of the wrong type. The problem must have the position of the argument.
func mistyped(t *testing.T, function string, r module.Resource, name string, wrong any) {
	c := call(function, value.NewMap("name", "/x", name, wrong))
	_, problems := module.Decode(r, c)
	for _, p := range problems {
		if p.Pos == c.At(name) && strings.Contains(p.Message, name) {
			return
		}
	}
	t.Errorf("%s accepts %s as its argument %s: %v", function, value.Repr(wrong), name, problems)
}

// wrongFor returns an invalid value for a field of a type, if there is one.
func wrongFor(of reflect.Type) (any, bool) {
	if of.Kind() == reflect.Pointer && of != reflect.TypeFor[*value.Map]() && of != reflect.TypeFor[*value.List]() {
		return wrongFor(of.Elem())
	}
	switch {
	case of == reflect.TypeFor[*value.Map](), of == reflect.TypeFor[*value.List]():
		return "text", true
	case of == reflect.TypeFor[[]string]():
		return value.NewList(value.NewMap("a", 1)), true
	case of == reflect.TypeFor[module.Mode](), of.Kind() == reflect.String, of.Kind() == reflect.Bool,
		of.Kind() == reflect.Int, of.Kind() == reflect.Float64:
		return value.NewMap("a", 1), true
	}
	return nil, false
}

// call returns a call in which each argument has its own position.
func call(function string, arguments *value.Map) module.Call {
	return module.Call{Function: function, Arguments: arguments, At: func(argument string) diag.Pos {
		return diag.Pos{File: "case.sls", Line: len(argument) + 1, Col: 1}
	}}
}
