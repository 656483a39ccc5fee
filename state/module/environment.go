package module

import (
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Environment reads an env argument, a mapping or a list of mappings or of NAME=value strings, as
// NAME=value. Without a value, or with false, a variable is empty.
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
