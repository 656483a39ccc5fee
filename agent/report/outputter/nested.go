package outputter

import (
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// The colours of text, by their numbers in terminals.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

// paint colours text if it is on.
type paint struct {
	on      bool
	ordered bool // ordered mappings are not sorted
}

func (p paint) color(color, text string) string {
	if !p.on || text == "" {
		return text
	}
	return "\x1b[0;" + color + "m" + text + "\x1b[0m"
}

const rule = "----------"

// answer returns the nested form of a whole answer.
func (p paint) answer(v any) string {
	var t tree
	t.paint = p
	t.line(0, cyan, "", host, ":")
	t.add(v, 4, "")
	return t.String()
}

// nested returns the nested form of a value, starting at a column.
func (p paint) nested(v any, column int) string {
	t := tree{paint: p}
	t.add(v, column, "")
	return t.String()
}

// tree writes values on one line each, indented by their depth.
type tree struct {
	strings.Builder
	paint
}

func (t *tree) line(column int, color, mark, text, after string) {
	t.WriteString(strings.Repeat(" ", column) + t.color(color, mark+text) + after + "\n")
}

func (t *tree) add(v any, column int, mark string) {
	switch v := v.(type) {
	case *value.Map:
		t.line(column, cyan, "", rule, "")
		for _, m := range t.members(v) {
			t.line(column, cyan, mark, m.name, ":")
			t.add(m.value, column+4, "")
		}
	case *value.List:
		t.items(v.Items, column)
	case value.Tuple:
		t.items(v, column)
	case string:
		t.text(v, column, mark)
	default:
		t.line(column, yellow, mark, value.Str(v), "")
	}
}

type member struct {
	name  string
	value any
}

// members returns a mapping's members by name, so that people can find them, or in its order.
func (p paint) members(m *value.Map) []member {
	all := make([]member, 0, m.Len())
	for key, item := range m.All() {
		all = append(all, member{value.Str(key), item})
	}
	if p.ordered && !m.IsPlain() {
		return all
	}
	structsort.Func(all, func(a, b member) int { return strings.Compare(a.name, b.name) })
	return all
}

// items writes a list. An item that is itself a list or a mapping starts below its own mark.
func (t *tree) items(items []any, column int) {
	for _, item := range items {
		switch item.(type) {
		case *value.Map:
			t.line(column, green, "", "|_", "")
			t.add(item, column+2, "")
		case *value.List, value.Tuple:
			t.line(column, green, "", "|_", "")
			t.add(item, column+2, "- ")
		default:
			t.add(item, column, "- ")
		}
	}
}

// text writes a string's lines below each other.
func (t *tree) text(s string, column int, mark string) {
	for i, line := range value.SplitLines(s, false) {
		if i > 0 {
			mark = strings.Repeat(" ", len(mark))
		}
		t.line(column, green, mark, line, "")
	}
}
