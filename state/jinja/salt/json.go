package salt

import (
	"math"
	"slices"
	"strings"

	"github.com/jmespath/go-jmespath"

	"github.com/corpus-agent/corpus-agent/state/jinja"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func toJSON(c *jinja.Call) (any, error) {
	v, err := plainArgument(c)
	if err != nil {
		return nil, err
	}
	o, err := jinja.JSONIndent(c.Args[2])
	if err != nil {
		return nil, err
	}
	if o.SortKeys, err = c.Bool(1); err != nil {
		return nil, err
	}
	text, err := value.Dumps(v, o)
	return text, err
}

// toScriptJSON implements Salt's tojson, which keeps the order of keys, unlike Jinja2's.
func toScriptJSON(c *jinja.Call) (any, error) {
	v, err := plainArgument(c)
	if err != nil {
		return nil, err
	}
	o, err := jinja.JSONIndent(c.Args[1])
	if err != nil {
		return nil, err
	}
	if o.SortKeys, err = c.Bool(2); err != nil {
		return nil, err
	}
	o.ASCII = true
	text, err := value.Dumps(v, o)
	return jinja.EscapeScript(text), err
}

func toPython(c *jinja.Call) (any, error) {
	v, err := plainArgument(c)
	return strings.TrimSpace(jinja.PrettyPrint(v)), err
}

func loadJSON(c *jinja.Call) (any, error) {
	v, err := c.Plain(0)
	if err != nil {
		return nil, err
	}
	text, ok := v.(string)
	if b, isBytes := v.([]byte); isBytes {
		text, ok = string(b), true
	}
	failure := &jinja.Failure{Class: "TemplateRuntimeError", Message: "Unable to load json from " +
		shortened(value.Str(v))}
	if !ok {
		if _, err := c.Str(0); err != nil {
			return nil, err
		}
		return nil, failure
	}
	loaded, err := value.FromJSON([]byte(text))
	if err != nil {
		failure.Message += ": " + err.Error()
		return nil, failure
	}
	return value.Plainly(loaded), nil
}

func shortened(s string) string {
	const enough = 60
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > enough {
		return strings.ToValidUTF8(s[:enough], "") + "..."
	}
	return s
}

// jsonQuery evaluates a JMESPath expression. The keys of mappings in the result are sorted.
func jsonQuery(c *jinja.Call) (any, error) {
	v, err := plainArgument(c)
	if err != nil {
		return nil, err
	}
	expr, err := c.Text(1)
	if err != nil {
		return nil, err
	}
	found, err := jmespath.Search(expr, goData(v, 0))
	if err != nil {
		return nil, valueError("json_query: " + err.Error())
	}
	// The library computes with floats, so whole numbers are converted back to integers. They are left alone after an
	// average, or if the data had whole floats before.
	if !strings.Contains(expr, "avg(") && !hasWholeFloat(v) {
		found = integers(found)
	}
	return value.Plainly(value.From(found)), nil
}

// hasWholeFloat reports whether a value contains a float without a fraction.
func hasWholeFloat(v any) bool {
	switch v := v.(type) {
	case float64:
		return v == math.Trunc(v)
	case *value.List:
		return slices.ContainsFunc(v.Items, hasWholeFloat)
	case value.Tuple:
		return slices.ContainsFunc(v, hasWholeFloat)
	case *value.Map:
		for _, item := range v.All() {
			if hasWholeFloat(item) {
				return true
			}
		}
	}
	return false
}

// integers converts floats without a fraction to integers.
func integers(v any) any {
	switch v := v.(type) {
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int(v)
		}
	case []any:
		for i, item := range v {
			v[i] = integers(item)
		}
	case map[string]any:
		for key, item := range v {
			v[key] = integers(item)
		}
	}
	return v
}
