package custom

import (
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// maxValues bounds what aliases can make of a small text.
const maxValues = 100_000

// converter turns YAML nodes into values and collects what is wrong with them.
type converter struct {
	file, text string
	problems   diag.List
	values     int
	stopped    bool // a limit was reached, and there is no point in going on
}

func (c *converter) grains(n *yaml.Node) (*value.Map, error) {
	if n.Kind != yaml.MappingNode && n.ShortTag() != "!!null" {
		return nil, c.problem(n, "grains are a mapping of names to values").WithHint("write it as `role: web`")
	}
	m := value.NewMap()
	c.mapping(m, n, 0)
	if err := c.problems.Err(); err != nil {
		return nil, err
	}
	return m, nil
}

func (c *converter) problem(n *yaml.Node, format string, args ...any) *diag.Diagnostic {
	d := c.problems.Add(diag.Pos{File: c.file, Line: n.Line, Col: n.Column}, format, args...)
	d.Excerpt = diag.Excerpt(c.text, n.Line, n.Column)
	return d
}

func (c *converter) value(n *yaml.Node, depth int) any {
	if c.values++; !c.stopped && (depth > maxDepth || c.values > maxValues) {
		c.stopped = true
		c.problem(n, "nested deeper than %d levels, or more than %d values", maxDepth, maxValues)
	}
	if c.stopped {
		return nil
	}
	switch n.Kind {
	case yaml.AliasNode:
		return c.value(n.Alias, depth+1)
	case yaml.SequenceNode:
		l := value.NewList()
		for _, item := range n.Content {
			l.Append(c.value(item, depth+1))
		}
		return l
	case yaml.MappingNode:
		m := value.NewMap()
		c.mapping(m, n, depth)
		return m
	}
	return c.scalar(n)
}

// mapping sets what the node has in m. What << brings in comes first and gives way.
func (c *converter) mapping(m *value.Map, n *yaml.Node, depth int) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].ShortTag() == "!!merge" {
			c.merge(m, n.Content[i+1], depth)
		}
	}
	first := map[any]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.ShortTag() == "!!merge" {
			continue
		}
		key := c.value(k, depth+1)
		name := value.Repr(key)
		if line, twice := first[name]; twice {
			c.problem(k, "%s is there twice, first in line %d", name, line)
			continue
		}
		first[name] = k.Line
		if err := m.SetKey(key, c.value(n.Content[i+1], depth+1)); err != nil {
			c.problem(k, "this cannot be a key: %v", err)
		}
	}
}

func (c *converter) merge(m *value.Map, n *yaml.Node, depth int) {
	switch v := c.value(n, depth+1).(type) {
	case *value.Map:
		m.Update(v)
	case *value.List:
		// Of several mappings an earlier one wins.
		for i := len(v.Items) - 1; i >= 0; i-- {
			if one, ok := v.Items[i].(*value.Map); ok {
				m.Update(one)
			}
		}
	default:
		c.problem(n, "<< takes a mapping, or a list of them")
	}
}

// The forms that plain scalars have in YAML 1.1 as Salt reads it: 0644 is decimal, and a number
// with an exponent is a number only with a dot.
var (
	decimal = regexp.MustCompile(`^[-+]?[0-9][0-9_]*$`)
	radix   = regexp.MustCompile(`^[-+]?0(x[0-9a-fA-F_]+|b[01_]+)$`)
	float   = regexp.MustCompile(`^[-+]?([0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)([eE][-+][0-9]+)?$`)
)

var words = map[string]any{
	"": nil, "~": nil, "null": nil, "Null": nil, "NULL": nil,
	"true": true, "True": true, "TRUE": true, "yes": true, "Yes": true, "YES": true, "on": true, "On": true, "ON": true,
	"false": false, "False": false, "FALSE": false, "no": false, "No": false, "NO": false, "off": false, "Off": false, "OFF": false,
	".inf": math.Inf(1), ".Inf": math.Inf(1), ".INF": math.Inf(1), "+.inf": math.Inf(1), "-.inf": math.Inf(-1),
	".nan": math.NaN(), ".NaN": math.NaN(), ".NAN": math.NaN(),
}

// scalar reads plain text by its form. Text that is quoted, a block, or tagged !!str is text.
func (c *converter) scalar(n *yaml.Node) any {
	const textual = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	tagged := n.Style&yaml.TaggedStyle != 0
	switch {
	case tagged && n.ShortTag() != "!!str":
		c.problem(n, "tags such as %s are not understood", n.ShortTag())
		return nil
	case tagged || n.Style&textual != 0:
		return n.Value
	}
	return plain(n.Value)
}

func plain(text string) any {
	if v, ok := words[text]; ok {
		return v
	}
	digits := strings.ReplaceAll(text, "_", "")
	switch {
	case decimal.MatchString(text):
		return integer(digits, 10)
	case radix.MatchString(text):
		return integer(digits, 0)
	case float.MatchString(text):
		if f, err := strconv.ParseFloat(digits, 64); err == nil {
			return f
		}
	}
	return text
}

func integer(digits string, base int) any {
	n, ok := new(big.Int).SetString(digits, base)
	switch {
	case !ok:
		return digits
	case n.IsInt64():
		return int(n.Int64())
	}
	return n
}
