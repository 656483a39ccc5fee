package salt

import (
	"errors"
	"strings"

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

// plainArgument returns the operand of a filter, with ranges and the like as lists.
func plainArgument(c *jinja.Call) (any, error) {
	if _, err := c.Str(0); err != nil {
		return nil, err
	}
	return c.Plain(0)
}

// collections returns the value of PyYAML's argument flow_style: true, false, or None for a mixture.
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

// slsParams formats a mapping as the arguments of a state.
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

// loadYAML parses YAML from text or an imported file. All mappings are plain dicts.
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

// yamlFailure returns the error for invalid YAML inside a template.
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

// goData converts a value to plain Go data, for JMESPath, which computes with floats.
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
