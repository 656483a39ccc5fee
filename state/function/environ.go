package function

import (
	"os"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// environ is the environment of what the run starts, where Salt has that of the minion: states change it.
type environ struct{ *Facts }

func environTable(f *Facts) Table {
	e := environ{f}
	return Table{
		"environ.get":       Of("key, default=''", e.get),
		"environ.has_value": Of("key, value=None", e.has),
		"environ.item":      Of("keys, default=''", e.item),
		"environ.items":     Of("", e.items),
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
	names, err := texts(keys)
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
