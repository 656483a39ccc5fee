package cloud

import (
	"strings"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// TagDrift notes the tags if they differ, and returns the tags to set and the names of those to remove. Tags whose
// names begin with aws: belong to AWS and are not removed.
func TagDrift(p *Plan, has map[string]string, want *value.Map) (set *value.Map, gone []string) {
	old, new := value.NewMap(), value.NewMap()
	set = value.NewMap()
	for key, v := range want.All() {
		name := value.Str(key)
		new.Set(name, value.Str(v))
		if now, ok := has[name]; !ok || now != value.Str(v) {
			set.Set(name, value.Str(v))
		}
	}
	for _, key := range Sorted(keys(has)).Items {
		name := value.Str(key)
		if strings.HasPrefix(name, "aws:") {
			continue
		}
		old.Set(name, has[name])
		if !want.Has(name) {
			gone = append(gone, name)
		}
	}
	if set.Len()+len(gone) > 0 {
		p.Differ("tags", old, new)
	}
	return set, gone
}

func keys(m map[string]string) (all []string) {
	for key := range m {
		all = append(all, key)
	}
	return all
}
