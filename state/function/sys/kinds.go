package sys

import (
	"maps"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/render"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// returners returns the returners of the tree: all, or those that patterns name.
func (s sys) returners(patterns []string) []string {
	return modulesOf(s.returnerFunctions(patterns, nil))
}

// returnerFunctions returns the functions of the returners of the tree.
func (s sys) returnerFunctions(patterns []string, _ *value.Map) []string {
	return fitting(slices.Sorted(maps.Keys(s.ownOf("returners"))), patterns)
}

// returnerDoc returns the documentation of the functions of returners.
func (s sys) returnerDoc(patterns []string) *value.Map {
	texts, own := value.NewMap(), s.ownOf("returners")
	for _, name := range s.returnerFunctions(patterns, nil) {
		texts.Set(name, docstring(own[name].Doc))
	}
	return texts
}

// renderers returns the names of the renderers of the agent and of the tree: all, or those that match globs.
func (s sys) renderers(patterns []string) []string {
	names := render.Names()
	for name := range s.ownOf("renderers") {
		if module, ok := strings.CutSuffix(name, ".render"); ok {
			names = append(names, module)
		}
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool {
		return len(patterns) > 0 && !slices.ContainsFunc(patterns, func(p string) bool { return value.Glob(p, name) })
	})
}

// rendererDoc returns the documentation of the renderers of the tree that globs match, or of all. As under Salt, a name
// alone matches none.
func (s sys) rendererDoc(patterns []string) *value.Map {
	texts := value.NewMap()
	for _, name := range s.renderers(nil) {
		d, ok := s.ownOf("renderers")[name+".render"]
		if ok && (len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool {
			return strings.Contains(p, "*") && value.Glob(p, name)
		})) {
			texts.Set(name, docstring(d.Doc))
		}
	}
	return texts
}
