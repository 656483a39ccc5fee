package file

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// dumpTOML writes a mapping like Python's toml: the plain values of a table, its arrays of tables, then the
// tables below it, level by level.
func dumpTOML(v any, _ dumpOptions) (string, error) {
	m, ok := v.(*value.Map)
	if !ok {
		return "", fmt.Errorf("a mapping was expected, not a %s", value.TypeName(v))
	}
	t := &tomlWriter{}
	text, tables := t.table(m, "")
	for len(tables) > 0 {
		var deeper []tomlTable
		for _, table := range tables {
			own, below := t.table(table.m, table.name)
			if own != "" || len(below) == 0 {
				if text != "" && !strings.HasSuffix(text, "\n\n") {
					text += "\n"
				}
				text += "[" + table.name + "]\n" + own
			}
			deeper = append(deeper, below...)
		}
		tables = deeper
	}
	return text, t.err
}

type tomlWriter struct{ err error }

type tomlTable struct {
	name string
	m    *value.Map
}

// table writes the values of a table and returns the tables in it.
func (t *tomlWriter) table(m *value.Map, name string) (text string, below []tomlTable) {
	prefix := name
	if prefix != "" {
		prefix += "."
	}
	arrays := ""
	for key, v := range m.All() {
		k := tomlKey(value.Str(key))
		switch v := v.(type) {
		case nil:
		case *value.Map:
			below = append(below, tomlTable{prefix + k, v})
		case *value.List:
			if hasTable(v) {
				arrays += t.array(v, prefix+k)
			} else {
				text += k + " = " + t.value(v) + "\n"
			}
		default:
			text += k + " = " + t.value(v) + "\n"
		}
	}
	return text + arrays, below
}

func hasTable(l *value.List) bool {
	for _, item := range l.Items {
		if _, ok := item.(*value.Map); ok {
			return true
		}
	}
	return false
}

// array writes an array of tables.
func (t *tomlWriter) array(l *value.List, name string) string {
	text := ""
	for _, item := range l.Items {
		m, ok := item.(*value.Map)
		if !ok {
			t.err = fmt.Errorf("%s has both tables and other values", name)
			return ""
		}
		own, below := t.table(m, name)
		nested := "\n"
		if strings.HasPrefix(own, "[") {
			nested += own
			own = ""
		}
		text += "[[" + name + "]]\n" + own
		for len(below) > 0 {
			var deeper []tomlTable
			for _, table := range below {
				inner, more := t.table(table.m, table.name)
				if inner != "" {
					nested += "[" + table.name + "]\n" + inner
				}
				deeper = append(deeper, more...)
			}
			below = deeper
		}
		text += nested
	}
	return text
}

func (t *tomlWriter) value(v any) string {
	switch v := v.(type) {
	case bool:
		return map[bool]string{true: "true", false: "false"}[v]
	case string:
		return tomlString(v)
	case *value.List:
		text := "["
		for _, item := range v.Items {
			text += " " + t.value(item) + ","
		}
		return text + "]"
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return value.Repr(v)
		}
		return strings.ReplaceAll(value.Repr(v), "e+0", "e+")
	case nil, *value.Map, value.Tuple:
		t.err = errors.New("a list has a " + value.TypeName(v) + ", which TOML cannot represent")
		return ""
	}
	return value.Str(v)
}

func tomlKey(key string) string {
	if regexp.MustCompile(`^[A-Za-z0-9_-]+$`).MatchString(key) {
		return key
	}
	return tomlString(key)
}

func tomlString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case strings.ContainsRune("\b\t\n\f\r", r):
			b.WriteByte('\\')
			b.WriteByte("btn\x00fr"[r-'\b'])
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
