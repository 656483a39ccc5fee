package module

import (
	"reflect"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Argument is an argument of a state function.
type Argument struct {
	Name     string
	Required bool
	Default  any // a value as in templates; nil if there is no default to show
}

// ArgumentsOf returns the arguments of a resource, the required ones first. open reports that it accepts any
// others as well.
func ArgumentsOf(r Resource) (arguments []Argument, open bool) {
	of := reflect.ValueOf(r).Elem()
	s := new(Decoder).shape(of.Type())
	arguments = []Argument{{Name: "name", Required: true}}
	for name, index := range s.fields {
		if name == "name" || strings.HasPrefix(name, "__") {
			continue
		}
		required := slices.Contains(s.required, name)
		arguments = append(arguments, Argument{Name: name, Required: required, Default: shownDefault(of.FieldByIndex(index))})
	}
	structsort.Func(arguments[1:], func(a, b Argument) int {
		if a.Required != b.Required {
			if a.Required {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
	return arguments, s.rest != nil
}

// shownDefault returns the value that a field has before it is decoded. It returns nil for an empty string or list and
// for fields of other types.
func shownDefault(field reflect.Value) any {
	switch v := field.Interface().(type) {
	case bool, int:
		return v
	case string:
		if v != "" {
			return v
		}
	case []string:
		if len(v) > 0 {
			return value.Strings(v...)
		}
	}
	return nil
}
