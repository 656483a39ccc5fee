package cloud

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// object is a mapping of the file: keys to texts, numbers as float64, or lists of texts.
type object = map[string]any

// objects returns the data of a cloud: the objects of each section by name, and under "" the values outside of
// sections.
func (c *Cloud) objects() (map[string]map[string]object, error) {
	data, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	var all map[string]any
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	sections := map[string]map[string]object{"": {"": {}}}
	for _, k := range keys() {
		if k.kind != section {
			if v, given := all[k.name]; given {
				sections[""][""][k.name] = v
			}
			continue
		}
		sections[k.name] = named(all[k.name])
	}
	return sections, nil
}

// named returns the objects of a section.
func named(section any) map[string]object {
	objects := map[string]object{}
	all, _ := section.(map[string]any)
	for name, one := range all {
		objects[name], _ = one.(map[string]any)
	}
	return objects
}

// fromObjects returns the cloud with this data. It is the inverse of objects.
func fromObjects(sections map[string]map[string]object) (*Cloud, error) {
	all := map[string]any{}
	for name, one := range sections[""][""] {
		all[name] = one
	}
	for name, named := range sections {
		if name != "" {
			all[name] = named
		}
	}
	data, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	c := New()
	c.Range4 = ""
	return c, json.Unmarshal(data, c)
}

// Clone returns a copy that shares nothing with c.
func (c *Cloud) Clone() (*Cloud, error) {
	sections, err := c.objects()
	if err != nil {
		return nil, err
	}
	return fromObjects(sections)
}

// Bytes returns a cloud as a cloud.yaml. Equal clouds have equal bytes.
func (c *Cloud) Bytes() ([]byte, error) {
	sections, err := c.objects()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("# Written by corpus node, corpus guest and corpus access.\n")
	for _, k := range keys() {
		if k.kind != section {
			writeValue(&b, "", k.name, sections[""][""][k.name])
			continue
		}
		if len(sections[k.name]) > 0 {
			fmt.Fprintf(&b, "%s:\n", k.name)
		}
		for _, name := range sortedKeys(sections[k.name]) {
			fmt.Fprintf(&b, "  %s:\n", quoted(name))
			for _, field := range k.of {
				writeValue(&b, "    ", field.name, sections[k.name][name][field.name])
			}
		}
	}
	return b.Bytes(), nil
}

func writeValue(b *bytes.Buffer, indent, name string, v any) {
	switch v := v.(type) {
	case string:
		fmt.Fprintf(b, "%s%s: %s\n", indent, name, quoted(v))
	case float64:
		fmt.Fprintf(b, "%s%s: %d\n", indent, name, int64(v))
	case []any:
		fmt.Fprintf(b, "%s%s:\n", indent, name)
		for _, item := range v {
			fmt.Fprintf(b, "%s  - %s\n", indent, quoted(fmt.Sprint(item)))
		}
	}
}

var plain = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9._-]*$`) })

// quoted returns a text as a YAML scalar.
func quoted(text string) string {
	words := []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
	if plain().MatchString(text) && !slices.Contains(words, text) {
		return text
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(text) != nil {
		return `""` // a string can always be encoded
	}
	return strings.TrimSuffix(b.String(), "\n")
}
