package ledger

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// An unknown field of a document is one that this agent does not know, since a newer agent wrote it. It must stay when
// this agent rewrites the file, because the newer agent needs it after the next upgrade.

// merge adds the unknown fields of an old document to a new document of the type t. A field belongs to the object in
// which it was found. A field of the outermost object, or of an object that always exists, is kept. A field of any
// other object is kept as long as an object with the same known content is in the document: it moves from `good` to
// `previous` with its pair, and is dropped with it.
func merge(t reflect.Type, old, fresh []byte) ([]byte, error) {
	var before, after any
	if decode(old, &before) != nil { // a file that is not JSON has no fields to keep
		return fresh, nil
	}
	if err := decode(fresh, &after); err != nil {
		return nil, err
	}
	u := unknowns{found: map[string]map[string]any{}}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	u.walk(t, "document", before, u.collect)
	if len(u.found) == 0 {
		return fresh, nil // this keeps the order of its fields
	}
	u.walk(t, "document", after, u.give)
	return json.MarshalIndent(after, "", "  ")
}

// decode reads JSON and keeps numbers as they are written.
func decode(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.Decode(v)
}

// unknowns holds unknown fields by the object that they belong to.
type unknowns struct{ found map[string]map[string]any }

func (u unknowns) collect(key string, known map[string]bool, object map[string]any) {
	for name, v := range object {
		if known[strings.ToLower(name)] {
			continue
		}
		if u.found[key] == nil {
			u.found[key] = map[string]any{}
		}
		u.found[key][name] = v
	}
}

func (u unknowns) give(key string, _ map[string]bool, object map[string]any) {
	for name, v := range u.found[key] {
		if _, taken := object[name]; !taken {
			object[name] = v
		}
	}
}

// walk calls visit for each object in a document of the type t, inner ones first.
func (u unknowns) walk(t reflect.Type, at string, v any, visit func(key string, known map[string]bool,
	object map[string]any)) {
	for t.Kind() == reflect.Pointer {
		t, at = t.Elem(), ""
	}
	switch v := v.(type) {
	case []any:
		if t.Kind() == reflect.Slice {
			for _, item := range v {
				u.walk(t.Elem(), "", item, visit)
			}
		}
	case map[string]any:
		switch {
		case t.Kind() == reflect.Map:
			for _, item := range v {
				u.walk(t.Elem(), "", item, visit)
			}
		case t.Kind() == reflect.Struct && !reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()):
			u.object(t, at, v, visit)
		}
	}
}

func (u unknowns) object(t reflect.Type, at string, v map[string]any,
	visit func(string, map[string]bool, map[string]any)) {
	known := map[string]bool{}
	key := identity(t, at, v)
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		known[strings.ToLower(name)] = true
		inner := ""
		if at != "" && f.Type.Kind() == reflect.Struct {
			inner = at + "." + name
		}
		if item, ok := v[name]; ok {
			u.walk(f.Type, inner, item, visit)
		}
	}
	visit(key, known, v)
}

// identity returns a key for an object: its place if it always exists, or else its known content.
func identity(t reflect.Type, at string, v map[string]any) string {
	if at != "" {
		return at
	}
	data, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	known := reflect.New(t)
	if json.Unmarshal(data, known.Interface()) != nil {
		return ""
	}
	content, err := json.Marshal(known.Interface())
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s %s", t, content)
}
