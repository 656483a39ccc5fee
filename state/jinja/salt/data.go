package salt

import (
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/jmespath/go-jmespath"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/jinja"
	"github.com/corpus-agent/corpus-agent/state/value"
	"github.com/corpus-agent/corpus-agent/state/yaml"
)

func dataFilters() map[string]jinja.Filter {
	v := jinja.Arg("value")
	return map[string]jinja.Filter{
		"dict_to_sls_yaml_params": jinja.Define("dict_to_sls_yaml_params", slsParams, v, jinja.Opt("flow_style", false)),
		"json":                    jinja.Define("json", toJSON, v, jinja.Opt("sort_keys", true), jinja.Opt("indent", nil)),
		"json_query":              jinja.Define("json_query", jsonQuery, jinja.Arg("data"), jinja.Arg("expr")),
		"load_json":               jinja.Define("load_json", loadJSON, v),
		"load_yaml":               jinja.Define("load_yaml", loadYAML, v),
		"python":                  jinja.Define("python", toPython, v),
		"tojson": jinja.Define("tojson", toScriptJSON, jinja.Arg("val"), jinja.Opt("indent", nil),
			jinja.Opt("sort_keys", false)),
		"xml":         jinja.Define("xml", toXML, v),
		"yaml":        jinja.Define("yaml", toYAML, v, jinja.Opt("flow_style", true)),
		"yaml_dquote": jinja.Define("yaml_dquote", yamlQuoted(yaml.DoubleQuoted), jinja.Arg("text")),
		"yaml_encode": jinja.Define("yaml_encode", yamlEncode, jinja.Arg("data")),
		"yaml_squote": jinja.Define("yaml_squote", yamlQuoted(yaml.SingleQuoted), jinja.Arg("text")),
	}
}

// plainArgument is the value a filter is for, with ranges and the like as lists.
func plainArgument(c *jinja.Call) (any, error) {
	if _, err := c.Str(0); err != nil {
		return nil, err
	}
	return c.Plain(0)
}

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

// toScriptJSON is tojson as Salt has it: unlike Jinja2's, it keeps the order of keys.
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

// collections is the argument flow_style of PyYAML: true, false, or None for a mixture.
func collections(c *jinja.Call, i int) (yaml.Collections, error) {
	if c.Args[i] == nil {
		return yaml.Mixed, nil
	}
	flow, err := c.Bool(i)
	if flow {
		return yaml.Flow, err
	}
	return yaml.Block, err
}

func toYAML(c *jinja.Call) (any, error) {
	v, err := plainArgument(c)
	if err != nil {
		return nil, err
	}
	style, err := collections(c, 1)
	return strings.TrimSpace(yaml.Dump(v, yaml.DumpOptions{Collections: style, Sort: yaml.SortPlain})), err
}

// slsParams writes a mapping as the arguments of a state.
func slsParams(c *jinja.Call) (any, error) {
	m, err := mapArgument(c, 0)
	if err != nil {
		return nil, err
	}
	style, err := collections(c, 1)
	if err != nil {
		return nil, err
	}
	params := value.NewList()
	for k, v := range m.All() {
		one := value.NewMap()
		if err := one.SetKey(k, v); err != nil {
			return nil, err
		}
		params.Append(one)
	}
	return strings.TrimSpace(yaml.Dump(params, yaml.DumpOptions{Collections: style, Sort: yaml.SortPlain})), nil
}

func yamlQuoted(quote func(string) string) func(c *jinja.Call) (any, error) {
	return func(c *jinja.Call) (any, error) {
		s, err := c.Str(0)
		return quote(s), err
	}
}

func yamlEncode(c *jinja.Call) (any, error) {
	v, err := plainArgument(c)
	if err != nil {
		return nil, err
	}
	text, err := yaml.Scalar(v)
	return text, err
}

// loadYAML reads YAML out of text or an imported file. All mappings are plain dicts.
func loadYAML(c *jinja.Call) (any, error) {
	v, err := c.Plain(0)
	if err != nil {
		return nil, err
	}
	text, ok := v.(string)
	if b, isBytes := v.([]byte); isBytes {
		text, ok = string(b), true
	}
	if !ok {
		if _, err := c.Str(0); err != nil {
			return nil, err
		}
		return nil, &jinja.Failure{Class: "TemplateRuntimeError", Message: "Unable to load yaml from " + value.Str(v)}
	}
	d, err := yaml.LoadString(text, "")
	if err != nil {
		return nil, yamlFailure(err)
	}
	return recoded(c, d.Value, decoded, 0)
}

// yamlFailure tells what is wrong with YAML inside a template.
func yamlFailure(err error) error {
	f := &jinja.Failure{Class: "TemplateRuntimeError", Message: "Encountered error loading yaml: " + err.Error()}
	var list diag.List
	if !errors.As(err, &list) || len(list) == 0 {
		return f
	}
	first := list[0]
	f.Message = "Encountered error loading yaml: " + strings.TrimPrefix(first.Pos.String(), ":") + ": " + first.Message
	f.Hint = first.Hint
	f.Excerpt = "in the YAML that it loads:\n" + first.Excerpt
	return f
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

// jsonQuery asks JMESPath. What it makes of mappings has its keys sorted.
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
	// The library counts in floats. Only the average makes one of integers; floats that look like
	// integers may also have been there before, and then all stay what they are.
	if !strings.Contains(expr, "avg(") && !hasWholeFloat(v) {
		found = integers(found)
	}
	return value.Plainly(value.From(found)), nil
}

// hasWholeFloat reports whether there is a float in a value that looks like an integer.
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

// integers makes integers of the floats that look like them.
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

// goData makes Go's plain data of a value, for JMESPath, which counts in floats.
func goData(v any, depth int) any {
	const deepest = 500
	if depth > deepest {
		return nil
	}
	switch v := v.(type) {
	case int:
		return float64(v)
	case *value.List:
		return goItems(v.Items, depth)
	case value.Tuple:
		return goItems(v, depth)
	case *value.Map:
		m := make(map[string]any, v.Len())
		for k, item := range v.All() {
			m[value.Str(k)] = goData(item, depth+1)
		}
		return m
	}
	return v
}

func goItems(items []any, depth int) []any {
	out := make([]any, len(items))
	for i, item := range items {
		out[i] = goData(item, depth+1)
	}
	return out
}
