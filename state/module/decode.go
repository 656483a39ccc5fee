package module

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Call is a step in the form that a resource is decoded from.
type Call struct {
	Function  string     // as state.function
	Arguments *value.Map // all arguments of the declaration
	At        func(argument string) diag.Pos
	// Reserved returns a value that only the run knows, such as __required__. It is called for each field that is
	// tagged with such a name and not in Arguments. Both Reserved and its result may be nil.
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
			problems.Add(c.at(""), "%s lacks its argument %s", c.Function, name).WithHint("add `- " + name +
				": ...` to the declaration")
		}
	}
	for key, v := range c.Arguments.All() {
		name := value.Str(key)
		if index, ok := s.fields[name]; ok {
			c.set(of.FieldByIndex(index), name, v, &problems)
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

// rest returns the map of the field for all other arguments.
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
		problems.Add(c.at(name), "argument %s of %s: %v", name, c.Function, err).WithHint(diag.HintOf(err))
	}
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

// text accepts a string, number or boolean, or a list of one of them.
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

// Boolean reads a truth value in the forms that SLS files have it.
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
