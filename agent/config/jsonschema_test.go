package config

import (
	"encoding/json"
	"strings"
)

// JSONSchema is agent.yaml's form for editors and other programs (https://json-schema.org, draft 2020-12). Limits of
// numbers and durations are in the descriptions; the agent checks them.
func JSONSchema() []byte {
	top := mapping()
	for _, k := range Keys() {
		at := top
		parts := strings.Split(k.Name, ".")
		for _, section := range parts[:len(parts)-1] {
			properties := at["properties"].(map[string]any)
			if properties[section] == nil {
				properties[section] = mapping()
			}
			at = properties[section].(map[string]any)
		}
		at["properties"].(map[string]any)[parts[len(parts)-1]] = k.schema()
		if len(parts) > 1 { // the dotted name is also valid
			top["properties"].(map[string]any)[k.Name] = map[string]any{
				"$ref": "#/properties/" + strings.Join(parts, "/properties/")}
		}
	}
	top["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	top["title"] = "agent.yaml"
	data, err := json.MarshalIndent(top, "", "  ")
	if err != nil {
		panic(err) // encoding a map of texts does not fail
	}
	return append(data, '\n')
}

func mapping() map[string]any {
	return map[string]any{"type": "object", "additionalProperties": false, "properties": map[string]any{}}
}

func (k Key) schema() map[string]any {
	s := map[string]any{}
	item := map[string]any{"type": "string"}
	switch k.Kind {
	case Number:
		s["type"] = "integer"
	case Switch:
		s["type"] = "boolean"
	case Duration:
		s["type"], s["pattern"] = []string{"string", "integer"}, `^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$|^0$`
	case Texts:
		s["type"], s["items"] = []string{"array", "string"}, item
	case Probes:
		s["type"], s["items"] = "array", map[string]any{"type": "object"}
	case Pillars:
		s["type"], s["items"] = "array", map[string]any{"type": "object", "minProperties": 1, "maxProperties": 1}
	default:
		s["type"] = "string"
	}
	switch choices := k.choices(); {
	case choices != nil && k.Kind == Texts:
		item["enum"] = choices
	case choices != nil:
		s["enum"] = choices
	}
	s["description"] = k.Doc
	if span := k.Range(); span != "" {
		s["description"] = k.Doc + " (" + span + ")"
	}
	if k.Default != nil {
		s["default"] = defaultOf(k)
	}
	return s
}

func defaultOf(k Key) any {
	if k.Kind == Duration {
		return inYAML(k.Default)
	}
	return k.Default
}
