package session

import (
	"errors"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// shown adds to each problem an excerpt of its file. A problem of rendering already has one, of the rendered text.
func (s *Session) shown(err error) error {
	var list diag.List
	if !errors.As(err, &list) {
		return err
	}
	texts := map[string]string{}
	for _, p := range list {
		if p.Excerpt != "" || p.Pos.Line == 0 {
			continue
		}
		text, ok := texts[p.Pos.File]
		if !ok {
			data, readErr := s.Host.Files.ReadFile(p.Pos.File)
			if readErr == nil { // a file that cannot be read gives no excerpt
				text = string(data)
			}
			texts[p.Pos.File] = text
		}
		p.Excerpt = diag.Excerpt(text, p.Pos.Line, p.Pos.Col)
	}
	return err
}
