package file

import (
	"context"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// Wanted is content that a state of another family takes from a source, as file.managed does.
type Wanted struct {
	URL, Env       string
	Hash, HashName string
	Template       string // the engine's name, "" for none
	Context        *value.Map
	Defaults       *value.Map
}

// Rendered gives content from a source: checked against its hash, and rendered if it is a template.
func (in Inputs) Rendered(ctx context.Context, w Wanted) ([]byte, error) {
	f := &family{Inputs: in}
	s := sourced{environment: environment{Env: w.Env}, Source: w.URL, SourceHash: w.Hash, SourceHashName: w.HashName}
	o, err := f.origin(ctx, s, w.URL)
	if err != nil {
		return nil, err
	}
	t := templated{Template: w.Template, Context: w.Context, Defaults: w.Defaults}
	data, _, err := f.whole(ctx, o, t)
	if err != nil {
		return nil, err
	}
	vars, err := t.vars(value.NewMap("source", o.url, "saltenv", o.env))
	if err != nil {
		return nil, err
	}
	return f.render(ctx, t, o.url, o.env, data, vars)
}

// Difference shows how two texts differ, as file states show it.
func (in Inputs) Difference(before, after string) string {
	return (&family{Inputs: in}).difference([]byte(before), []byte(after), true)
}
