package jinja

import (
	"strings"

	"github.com/corpus-agent/corpus-agent/state/value"
)

func pprintFilter(c *Call) (any, error) { return PrettyPrint(c.Args[0]), nil }

// PrettyPrint formats a value as Python's pprint.pformat does: a collection that does not fit on a line of 80
// characters gets a line for each item, and the keys of mappings are sorted.
func PrettyPrint(v any) string {
	p := &prettyPrinter{}
	p.print(v, 0, 0)
	return p.out.String()
}

type prettyPrinter struct {
	out   strings.Builder
	depth int
}

const (
	prettyWidth = 80
	prettyDepth = 100
)

// print writes v, which starts at column and is followed by the given number of closing brackets.
func (p *prettyPrinter) print(v any, column, closing int) {
	text := prettyRepr(v, 0)
	if column+len(text)+closing <= prettyWidth || p.depth > prettyDepth {
		p.out.WriteString(text)
		return
	}
	p.depth++
	defer func() { p.depth-- }()
	switch v := v.(type) {
	case *value.Map:
		p.members(v, column, closing)
	case *value.List:
		p.items("[", v.Items, "]", column, closing)
	case value.Tuple:
		end := ")"
		if len(v) == 1 {
			end = ",)"
		}
		p.items("(", v, end, column, closing)
	default:
		p.out.WriteString(text)
	}
}

func (p *prettyPrinter) items(open string, items []any, end string, column, closing int) {
	p.out.WriteString(open)
	for i, item := range items {
		follows := 1
		if i == len(items)-1 {
			follows = closing + len(end)
		}
		p.print(item, column+1, follows)
		if i < len(items)-1 {
			p.out.WriteString(",\n" + strings.Repeat(" ", column+1))
		}
	}
	p.out.WriteString(end)
}

func (p *prettyPrinter) members(m *value.Map, column, closing int) {
	p.out.WriteString("{")
	keys := sortedKeys(m)
	for i, k := range keys {
		name := prettyRepr(k, 0)
		p.out.WriteString(name + ": ")
		follows := 1
		if i == len(keys)-1 {
			follows = closing + 1
		}
		v, _, _ := m.GetKey(k)
		p.print(v, column+1+len(name)+2, follows)
		if i < len(keys)-1 {
			p.out.WriteString(",\n" + strings.Repeat(" ", column+1))
		}
	}
	p.out.WriteString("}")
}

// sortedKeys returns the sorted keys; keys without an order are sorted by their types.
func sortedKeys(m *value.Map) []any {
	keys := m.Keys()
	if value.SortBy(keys, func(k any) any { return k }, false) != nil {
		keys = m.Keys()
		_ = value.SortBy(keys, func(k any) any { return value.TypeName(k) }, false)
	}
	return keys
}

// prettyRepr returns the repr of v with sorted keys.
func prettyRepr(v any, depth int) string {
	if depth > prettyDepth {
		return value.Repr(v)
	}
	switch v := v.(type) {
	case *value.Map:
		parts := []string{}
		for _, k := range sortedKeys(v) {
			item, _, _ := v.GetKey(k)
			parts = append(parts, prettyRepr(k, depth+1)+": "+prettyRepr(item, depth+1))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case *value.List:
		return "[" + prettyItems(v.Items, depth) + "]"
	case value.Tuple:
		if len(v) == 1 {
			return "(" + prettyItems(v, depth) + ",)"
		}
		return "(" + prettyItems(v, depth) + ")"
	}
	return value.Repr(v)
}

func prettyItems(items []any, depth int) string {
	parts := make([]string, len(items))
	for i, item := range items {
		parts[i] = prettyRepr(item, depth+1)
	}
	return strings.Join(parts, ", ")
}
