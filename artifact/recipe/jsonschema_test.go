package recipe

import (
	"encoding/json"
	"slices"
)

// JSONSchema returns the file's schema for editors and other programs (https://json-schema.org, draft 2020-12). Rules
// that a schema cannot express, such as that a path stays inside the tree, are only checked by the parser.
func JSONSchema() []byte {
	top := object(Keys())
	top["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	top["title"] = Name
	data, err := json.MarshalIndent(top, "", "  ")
	if err != nil {
		panic(err) // maps of texts can always be encoded
	}
	return append(data, '\n')
}

func object(keys []Key) map[string]any {
	properties := map[string]any{}
	required := []string{}
	for _, k := range keys {
		properties[k.Name] = k.schema()
		if k.Required {
			required = append(required, k.Name)
		}
	}
	o := map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		slices.Sort(required)
		o["required"] = required
	}
	return o
}

func (k Key) schema() map[string]any {
	var s map[string]any
	switch k.Kind {
	case Section:
		s = object(k.Keys)
	case Sections:
		s = map[string]any{"type": "array", "items": object(k.Keys)}
	case Data:
		s = map[string]any{"type": "object"}
	case Probes:
		s = map[string]any{"type": []string{"object", "array"}}
	case Flag:
		s = map[string]any{"type": "boolean"}
	case Texts, Paths:
		s = map[string]any{"type": "array", "items": map[string]any{"type": "string"}}
	default:
		s = map[string]any{"type": []string{"string", "number"}}
	}
	if k.Choices != nil {
		s["enum"] = k.Choices
	}
	if k.Pattern != "" {
		s["pattern"] = k.Pattern
	}
	s["description"] = k.Doc
	return s
}
