package file

import (
	"context"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// ContentRequest describes content that another family of states reads from a source, as file.managed does.
type ContentRequest struct {
	URL, Env       string
	Hash, HashName string
	Template       string // the name of the engine, "" for none
	Context        *value.Map
	Defaults       *value.Map
}

// Rendered returns the content of a source, verified against its hash and rendered if a template engine is
// named.
func (in Inputs) Rendered(ctx context.Context, w ContentRequest) ([]byte, error) {
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

// Difference describes the difference of two texts that only one user may read in the form of the file states.
func (in Inputs) Difference(before, after string) string {
	return (&family{Inputs: in}).difference([]byte(before), []byte(after), true, readers{release: true})
}
