package function

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// Kind says how a parameter takes its arguments.
type Kind int

// The kinds of parameters.
const (
	Plain    Kind = iota // by position or by name
	Named                // by name only
	Rest                 // *args: the remaining positional arguments
	Keywords             // **kwargs: the remaining named arguments
)

// Parameter is one parameter of a function.
type Parameter struct {
	Name     string
	Kind     Kind
	Optional bool
	Default  any // of an optional one
}

// ParseSignature parses parameters as Python writes them.
func ParseSignature(signature string) ([]Parameter, error) {
	var parameters []Parameter
	kind := Plain
	for _, text := range splitTop(signature) {
		p, err := parseParameter(strings.TrimSpace(text), kind)
		if err != nil {
			return nil, fmt.Errorf("signature %q: %w", signature, err)
		}
		if p.Kind == Rest {
			kind = Named
		}
		parameters = append(parameters, p)
	}
	return parameters, nil
}

func parseParameter(text string, kind Kind) (Parameter, error) {
	if name, ok := strings.CutPrefix(text, "**"); ok {
		return Parameter{Name: name, Kind: Keywords, Optional: true}, nil
	}
	if name, ok := strings.CutPrefix(text, "*"); ok {
		return Parameter{Name: name, Kind: Rest, Optional: true}, nil
	}
	name, literal, optional := strings.Cut(text, "=")
	p := Parameter{Name: name, Kind: kind, Optional: optional}
	if !optional {
		return p, nil
	}
	var err error
	p.Default, err = parseLiteral(literal)
	return p, err
}

// Unset is the default of a parameter whose function must distinguish None from a missing argument. Signatures
// write it as Python's "...".
type Unset struct{}

// splitTop splits at commas outside quotes.
func splitTop(s string) []string {
	var parts []string
	quote, start := byte(0), 0
	for i := range len(s) {
		switch c := s[i]; {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case quote == 0 && c == ',':
			parts = append(parts, s[start:i])
			start = i + 1
		}
	}
	if strings.TrimSpace(s[start:]) != "" {
		parts = append(parts, s[start:])
	}
	return parts
}

// parseLiteral parses a default: a scalar or an empty collection.
func parseLiteral(s string) (any, error) {
	switch s {
	case "None":
		return nil, nil
	case "...":
		return Unset{}, nil
	case "True", "False":
		return s == "True", nil
	case "[]":
		return value.NewList(), nil
	case "{}":
		return value.NewMap(), nil
	case "()":
		return value.Tuple{}, nil
	}
	if n := len(s); n > 1 && (s[0] == '\'' || s[0] == '"') && s[n-1] == s[0] {
		return s[1 : n-1], nil
	}
	return parseNumber(s)
}

// parseNumber reads an integer or a float.
func parseNumber(s string) (any, error) {
	if n, err := strconv.Atoi(s); err == nil {
		return n, nil
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		return f, nil
	}
	return nil, fmt.Errorf("%q is not a valid default", s)
}
