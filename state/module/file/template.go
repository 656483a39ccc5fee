package file

import (
	"context"
	"fmt"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// templated holds the arguments for content that is rendered.
type templated struct {
	Template string `sls:"template"`
	Context  any    `sls:"context"`
	Defaults any    `sls:"defaults"`
}

// vars returns the variables of a template: those given, overridden by defaults and then by context.
func (t templated) vars(given *value.Map) (*value.Map, error) {
	vars := given.Clone()
	for _, layer := range []struct {
		name string
		v    any
	}{{"defaults", t.Defaults}, {"context", t.Context}} {
		m, ok := layer.v.(*value.Map)
		if !ok && value.Truth(layer.v) {
			return nil, diag.Argument.Hint(fmt.Errorf("%s is a %s", layer.name, value.TypeName(layer.v)),
				"write it as a mapping of names to values")
		}
		vars.Update(m)
	}
	return vars, nil
}

// render renders data if a template engine is named.
func (f *family) render(ctx context.Context, t templated, source, env string, data []byte,
	vars *value.Map) ([]byte, error) {
	if t.Template == "" {
		return data, nil
	}
	rendered, err := f.Templates.Render(ctx,
		Template{Engine: t.Template, Source: source, Env: env, Text: data, Vars: vars})
	if err != nil {
		return nil, fmt.Errorf("rendering the template: %w", err)
	}
	return rendered, nil
}
