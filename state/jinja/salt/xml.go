package salt

import (
	"strings"

	"github.com/corpus-agent/corpus-agent/state/jinja"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// element is a node of XML: mappings and lists in a mapping are children, and other values attributes.
type element struct {
	tag      string
	text     string
	attrs    *value.Map // may be nil
	children []*element
}

func toXML(c *jinja.Call) (any, error) {
	v, err := plainArgument(c)
	if err != nil {
		return nil, err
	}
	pairs, err := pairsOf(v)
	if err != nil {
		return nil, err
	}
	root := &element{}
	for _, p := range pairs {
		if err := root.add(p[0], p[1], 0); err != nil {
			return nil, err
		}
	}
	if len(root.children) == 0 {
		return nil, valueError("xml needs a mapping with the root element")
	}
	var b strings.Builder
	b.WriteString("<?xml version=\"1.0\" ?>\n")
	root.children[len(root.children)-1].write(&b, "")
	return b.String(), nil
}

// pairsOf returns the names and contents of the entries of an element.
func pairsOf(v any) ([][2]any, error) {
	var pairs [][2]any
	m, ok := v.(*value.Map)
	if ok {
		for k, item := range m.All() {
			pairs = append(pairs, [2]any{k, item})
		}
		return pairs, nil
	}
	switch v.(type) {
	case *value.List, value.Tuple:
		return nil, nil
	}
	return nil, &jinja.Failure{Class: "TemplateRuntimeError", Message: "Value is not a dict or list. Cannot render as XML"}
}

func (e *element) add(tag, v any, depth int) error {
	const deepest = 500
	if depth > deepest {
		return &jinja.Failure{Class: "RecursionError", Message: "maximum recursion depth exceeded"}
	}
	if l, ok := v.(*value.List); ok {
		for _, item := range l.Items {
			if err := e.add(tag, item, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	child := &element{tag: value.Str(tag)}
	e.children = append(e.children, child)
	m, ok := v.(*value.Map)
	if !ok {
		switch v.(type) {
		case string, bool, int, float64:
			child.text = value.Str(v)
			return nil
		}
		_, err := pairsOf(v)
		return err
	}
	child.attrs = value.NewMap()
	for k, item := range m.All() {
		switch item.(type) {
		case *value.Map, *value.List:
			if err := child.add(k, item, depth+1); err != nil {
				return err
			}
		default:
			child.attrs.Set(value.Str(k), value.Str(item))
		}
	}
	return nil
}

func (e *element) write(b *strings.Builder, indent string) {
	b.WriteString(indent + "<" + e.tag)
	if e.attrs != nil {
		for k, v := range e.attrs.All() {
			b.WriteString(" " + value.Str(k) + `="` + escapeXML(value.Str(v)) + `"`)
		}
	}
	switch {
	case e.text != "":
		b.WriteString(">" + escapeXML(e.text) + "</" + e.tag + ">\n")
	case len(e.children) == 0:
		b.WriteString("/>\n")
	default:
		b.WriteString(">\n")
		for _, child := range e.children {
			child.write(b, indent+" ")
		}
		b.WriteString(indent + "</" + e.tag + ">\n")
	}
}

func escapeXML(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(s)
}
