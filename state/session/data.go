package session

import (
	"context"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/render"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Data renders a file of the host that is in no tree, in the way SLS files are rendered, and returns the mapping in
// it. An empty file gives an empty mapping.
func (s *Session) Data(ctx context.Context, file string) (*value.Map, error) {
	text, err := s.Host.Files.ReadFile(file)
	if err != nil {
		return nil, err
	}
	name := path.Base(file)
	doc, err := s.renderState(ctx, render.Source{Name: name, File: file, Env: "base", Text: string(text)},
		strings.TrimSuffix(name, path.Ext(name)))
	if err != nil {
		return nil, err
	}
	switch v := doc.Value.(type) {
	case nil:
		return value.NewMap(), nil
	case *value.Map:
		return v, nil
	}
	return nil, diag.At(diag.Pos{File: file, Line: 1}, "a mapping was expected")
}
