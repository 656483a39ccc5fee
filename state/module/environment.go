package module

import (
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Environment converts an env argument to NAME=value strings. It accepts a string, a mapping, or a list of
// mappings or strings. The values null and false mean an empty variable.
func Environment(v any) []string {
	var env []string
	switch v := v.(type) {
	case string:
		env = append(env, v)
	case *value.Map:
		for name, val := range v.All() {
			env = append(env, variable(value.Str(name), val))
		}
	case *value.List:
		for _, item := range v.Items {
			env = append(env, Environment(item)...)
		}
	}
	return env
}

func variable(name string, v any) string {
	switch v {
	case nil, false:
		return name + "="
	}
	return name + "=" + value.Str(v)
}
