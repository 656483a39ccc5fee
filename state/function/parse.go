package function

import (
	"fmt"

	"github.com/corpus-agent/corpus-agent/state/value"
	"github.com/corpus-agent/corpus-agent/state/yaml"
)

// FromYAML reads a text as YAML; errors name its file.
func FromYAML(text, file string) (any, error) {
	doc, err := yaml.LoadString(text, file)
	if err != nil {
		return nil, err
	}
	return doc.Value, nil
}

// FromJSON reads a text as JSON; errors name its file.
func FromJSON(text, file string) (any, error) {
	v, err := value.FromJSON([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("%s: not JSON: %w", file, err)
	}
	return v, nil
}
