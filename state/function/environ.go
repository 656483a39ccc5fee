package function

import (
	"os"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// environ is the environment of the run itself, where Salt has that of the minion.
func environTable() Table {
	return Table{
		"environ.get":       Of("key, default=''", environGet),
		"environ.has_value": Of("key, value=None", environHas),
		"environ.item":      Of("keys, default=''", environItem),
		"environ.items":     Of("", environItems),
	}
}

func environGet(key, fallback any) any {
	name, ok := key.(string)
	if !ok {
		return false
	}
	if v, ok := os.LookupEnv(name); ok {
		return v
	}
	return fallback
}

func environHas(key, wanted any) bool {
	name, ok := key.(string)
	if !ok {
		return false
	}
	v, ok := os.LookupEnv(name)
	return ok && (wanted == nil || value.Equal(v, wanted))
}

func environItem(keys, fallback any) *value.Map {
	found := value.NewMap()
	switch keys.(type) {
	case string, *value.List:
	default:
		return found
	}
	names, err := texts(keys)
	if err != nil {
		return found
	}
	for _, name := range names {
		found.Set(name, environGet(name, fallback))
	}
	return found
}

func environItems() *value.Map {
	all := value.NewMap()
	for _, pair := range os.Environ() {
		name, v, _ := strings.Cut(pair, "=")
		all.Set(name, v)
	}
	return all
}
