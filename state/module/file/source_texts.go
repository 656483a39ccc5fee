package file

import (
	"context"
	"errors"
	"slices"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// textual holds the arguments of functions that insert text into a file from the SLS file or from sources, each
// of which may be a template.
type textual struct {
	sourced
	templated
	Sources      []string `sls:"sources"`
	SourceHashes []string `sls:"source_hashes"`
}

// texts returns the rendered sources; nil if there are none.
func (t textual) texts(ctx context.Context, f *family, name string) ([]string, error) {
	if value.Truth(t.Source) && len(t.Sources) > 0 {
		return nil, diag.Contradiction.Hint(errors.New("both source and sources are given"), "keep one of them")
	}
	places, hashes := t.Sources, t.SourceHashes
	if value.Truth(t.Source) {
		places, hashes = []string{value.Str(t.Source)}, []string{t.SourceHash}
	}
	ctx = host.To(ctx, host.Recipient{Path: name, UID: -1})
	var list []string
	for i, place := range places {
		one := t.sourced
		one.Source, one.SourceHash = place, ""
		if i < len(hashes) {
			one.SourceHash = hashes[i]
		}
		text, err := t.text(ctx, f, one, name)
		if err != nil {
			return nil, err
		}
		list = append(list, text)
	}
	return slices.Clip(list), nil
}

func (t textual) text(ctx context.Context, f *family, s sourced, name string) (string, error) {
	o, err := f.origin(ctx, s, name)
	if err != nil {
		return "", err
	}
	data, _, err := f.whole(ctx, o, t.templated)
	if err != nil {
		return "", err
	}
	vars, err := t.vars(value.NewMap("name", name, "source", o.url, "saltenv", o.env))
	if err != nil {
		return "", err
	}
	data, err = f.render(ctx, t.templated, o.url, o.env, data, vars)
	return string(data), err
}
