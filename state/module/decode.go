package module

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Call holds the function and the arguments of a step, from which a resource is decoded.
type Call struct {
	Function  string     // as state.function
	Arguments *value.Map // all arguments of the declaration
	At        func(argument string) diag.Pos
	// Reserved returns a value that describes the run, such as __required__. It is called for each field that is tagged
	// with such a name and not in Arguments. Both Reserved and its result may be nil.
	Reserved func(name string) any
}

// Decode decodes a single call; see Decoder.Decode.
func Decode(r Resource, c Call) (warnings, problems diag.List) {
	return new(Decoder).Decode(r, c)
}

// Decoder sets the fields of resources from arguments. It caches the fields of each type, so that a run with
// thousands of steps inspects each type once. The zero Decoder is ready for use, also concurrently.
type Decoder struct{ shapes sync.Map } // reflect.Type -> *shape

// Decode sets a resource's fields from the arguments of a step. A tag names the argument of a field:
//
//	Path   string   `sls:"name"`
//	Groups []string `sls:"groups"`
//	Source []string `sls:"source,required"`
//
// A field of type any accepts every value. Fields of type Mode, *bool, *int and *string distinguish an argument
// that is not given. The fields of embedded structs are included. A field with the tag __arguments__ gets all
// arguments. A field with the tag * gets those that no other field has, for functions that pass them on.
// Arguments without a field are warnings, as in Salt. Values of the wrong type and missing required arguments
// are problems. Both have the position of the argument in its file.
func (d *Decoder) Decode(r Resource, c Call) (warnings, problems diag.List) {
	of := reflect.ValueOf(r).Elem()
	s := d.shape(typeOf(r))
	for _, name := range s.required {
		if !c.Arguments.Has(name) {
			problems.Add(c.at(""), "%s lacks its argument %s", c.Function, name).WithHint(diag.Argument, "add `- "+name+
				": ...` to the declaration")
		}
	}
	for key, v := range c.Arguments.All() {
		name := value.Str(key)
		if index, ok := s.fields[name]; ok {
			s.set(c, of.FieldByIndex(index), name, v, &problems)
		} else if General(name) {
			continue
		} else if s.rest != nil {
			rest(of.FieldByIndex(s.rest)).Set(name, v)
		} else {
			warnings = append(warnings, s.unknown(c, name))
		}
	}
	for _, name := range s.reserved {
		if v := c.reserved(name); v != nil {
			c.set(of.FieldByIndex(s.fields[name]), name, v, &problems)
		}
	}
	return warnings, problems
}

// rest returns the map of the field for all other arguments. It creates the map if the field is nil.
func rest(field reflect.Value) *value.Map {
	if field.IsNil() {
		field.Set(reflect.ValueOf(value.NewMap()))
	}
	return field.Interface().(*value.Map)
}

func (c Call) at(argument string) diag.Pos {
	if c.At == nil {
		return diag.Pos{}
	}
	return c.At(argument)
}

func (c Call) set(field reflect.Value, name string, v any, problems *diag.List) {
	if err := assign(field, v); err != nil {
		problems.Add(c.at(name), "argument %s of %s: %v", name, c.Function, err).WithHint(diag.Argument, diag.HintOf(err))
	}
}

// set sets the field of an argument. A required argument whose field is a pointer must not be None: code that uses it
// relies on it.
func (s *shape) set(c Call, field reflect.Value, name string, v any, problems *diag.List) {
	if v == nil && field.Kind() == reflect.Pointer && slices.Contains(s.required, name) {
		problems.Add(c.at(name), "argument %s of %s is None, and it is required", name, c.Function).
			WithHint(diag.Argument, "give it a value")
		return
	}
	c.set(field, name, v, problems)
}

// reserved returns the value of a field for a reserved name.
func (c Call) reserved(name string) any {
	switch {
	case c.Arguments.Has(name):
		return nil
	case name == "__arguments__":
		return c.Arguments
	case c.Reserved == nil:
		return nil
	}
	return c.Reserved(name)
}

// shape describes the arguments of a resource type.
type shape struct {
	fields   map[string][]int // index of the field for each argument
	required []string
	reserved []string // names that begin with __
	rest     []int    // index of the field for all other arguments; nil if there is none
}

func typeOf(r Resource) reflect.Type { return reflect.TypeOf(r).Elem() }

func (d *Decoder) shape(t reflect.Type) *shape {
	if known, ok := d.shapes.Load(t); ok {
		return known.(*shape)
	}
	s := &shape{fields: map[string][]int{}}
	s.collect(t, nil)
	d.shapes.Store(t, s)
	return s
}

// collect adds the fields with a tag.
func (s *shape) collect(t reflect.Type, above []int) {
	for i := range t.NumField() {
		field := t.Field(i)
		index := append(slices.Clip(above), i)
		tag, ok := field.Tag.Lookup("sls")
		if !ok {
			if field.Anonymous && field.Type.Kind() == reflect.Struct {
				s.collect(field.Type, index)
			}
			continue
		}
		name, option, _ := strings.Cut(tag, ",")
		if name == "*" {
			s.rest = index
			continue
		}
		s.fields[name] = index
		if option == "required" {
			s.required = append(s.required, name)
		}
		if strings.HasPrefix(name, "__") {
			s.reserved = append(s.reserved, name)
		}
	}
}

func (s *shape) unknown(c Call, name string) *diag.Diagnostic {
	text := fmt.Sprintf("%s has no argument %s", c.Function, name)
	hint := ""
	if meant := s.control(name); meant != "" {
		hint = fmt.Sprintf("did you mean %q?", meant)
	} else {
		hint = diag.DidYouMean(name, s.names())
	}
	if hint != "" {
		text += ": " + hint
	}
	return diag.At(c.at(name), "%s", text)
}

// names returns the arguments that a declaration may use, sorted.
func (s *shape) names() []string {
	names := make([]string, 0, len(s.fields))
	for known := range s.fields {
		if !strings.HasPrefix(known, "__") {
			names = append(names, known)
		}
	}
	slices.Sort(names)
	return names
}
