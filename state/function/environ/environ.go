// Package environ implements environ.*: the environment of the processes that the run starts.
package environ

import (
	"os"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// environ gives access to the environment of the processes that the run starts. Salt's functions read the
// environment of the minion instead. environ.setenv changes it.
type environ struct{ *function.Facts }

// Functions returns the functions of environ that templates may call.
func Functions(f *function.Facts) function.Table {
	e := environ{f}
	return function.Table{
		"environ.get":       function.Of("key, default=''", e.get),
		"environ.has_value": function.Of("key, value=None", e.has),
		"environ.item":      function.Of("keys, default=''", e.item),
		"environ.items":     function.Of("", e.items),
	}
}

func (e environ) get(key, fallback any) any {
	name, ok := key.(string)
	if !ok {
		return false
	}
	if v, ok := e.lookup(name); ok {
		return v
	}
	return fallback
}

func (e environ) has(key, wanted any) bool {
	name, ok := key.(string)
	if !ok {
		return false
	}
	v, ok := e.lookup(name)
	return ok && (wanted == nil || value.Equal(v, wanted))
}

func (e environ) item(keys, fallback any) *value.Map {
	found := value.NewMap()
	switch keys.(type) {
	case string, *value.List:
	default:
		return found
	}
	names, err := function.Texts(keys)
	if err != nil {
		return found
	}
	for _, name := range names {
		found.Set(name, e.get(name, fallback))
	}
	return found
}

func (e environ) items() *value.Map {
	all := value.NewMap()
	for _, pair := range e.all() {
		name, v, _ := strings.Cut(pair, "=")
		all.Set(name, v)
	}
	return all
}

func (e environ) all() []string {
	if e.Host == nil {
		return os.Environ()
	}
	return e.Host.Env.All()
}

func (e environ) lookup(name string) (string, bool) {
	if e.Host == nil {
		return os.LookupEnv(name)
	}
	return e.Host.Env.Get(name)
}
