package function

import (
	"fmt"

	"github.com/corpus-agent/corpus-agent/state/value"
	"github.com/corpus-agent/corpus-agent/state/yaml"
)

// FromYAML parses text as YAML. file is the name in errors.
func FromYAML(text, file string) (any, error) {
	doc, err := yaml.LoadString(text, file)
	if err != nil {
		return nil, err
	}
	return doc.Value, nil
}

// FromJSON parses text as JSON. file is the name in errors.
func FromJSON(text, file string) (any, error) {
	v, err := value.FromJSON([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("%s: not JSON: %w", file, err)
	}
	return v, nil
}
