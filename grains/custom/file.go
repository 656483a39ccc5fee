package custom

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
	"github.com/corpus-agent/corpus-agent/state/yaml"
)

// ReadFile reads grains from a file that is a YAML or JSON mapping. Mistakes are diagnostics with positions, all of
// them at once. If the file does not exist, the error wraps fs.ErrNotExist.
func ReadFile(path string) (*value.Map, error) {
	f, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("reading grains: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxOutput+1))
	if err != nil {
		return nil, fmt.Errorf("reading grains: %w", err)
	}
	if len(data) > maxOutput {
		return nil, fmt.Errorf("reading grains: %s has more than %d KiB", path, maxOutput>>10)
	}
	return parse(path, data)
}

// open opens a file, and fails without blocking if it is not a regular file.
func open(path string) (*os.File, error) {
	return walk.OpenGiven(path)
}

// parse parses a mapping of grains. from is the origin of the text, for errors. An empty text has no grains.
func parse(from string, data []byte) (*value.Map, error) {
	if text := bytes.TrimSpace(data); len(text) > 0 && text[0] == '{' && shallow(data) {
		if v, err := value.FromJSON(data); err == nil {
			return v.(*value.Map), nil
		}
	}
	document, err := yaml.Load(data, from)
	if err != nil {
		return nil, err
	}
	switch v := document.Value.(type) {
	case nil:
		return value.NewMap(), nil
	case *value.Map:
		return v, nil
	}
	d := diag.At(document.Start(), "grains are a mapping of names to values").
		WithHint(diag.Grains, "write it as `role: web`")
	d.Excerpt = diag.Excerpt(string(data), d.Pos.Line, d.Pos.Col)
	return nil, d
}

// maxDepth is the maximum depth of nested values. No real grain is nested so deep, and parsing a program's endless
// brackets takes hundreds of megabytes.
const maxDepth = 100

// shallow reports whether a JSON text is nested no deeper than maxDepth, up to its first error.
func shallow(data []byte) bool {
	d := json.NewDecoder(bytes.NewReader(data))
	depth := 0
	for {
		token, err := d.Token()
		if err != nil {
			return true
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			if depth++; depth > maxDepth {
				return false
			}
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
}
