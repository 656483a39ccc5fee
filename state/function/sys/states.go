package sys

import (
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/function/manual"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// states returns the functions of states, or none if the session cannot apply states.
func (s sys) states() module.Registry {
	if s.Modules == nil {
		return nil
	}
	return s.Modules()
}

// stateFunctions returns the names of state functions, those of the tree's own modules included.
func (s sys) stateFunctions(patterns []string) []string {
	all := s.states()
	if s.Listed != nil {
		all = s.Listed()
	}
	names := all.Functions()
	slices.Sort(names)
	return fitting(names, patterns)
}

// stateModules returns the names of states: all, or those that match globs.
func (s sys) stateModules(patterns []string) []string {
	return slices.DeleteFunc(modulesOf(s.stateFunctions(nil)), func(name string) bool {
		return len(patterns) > 0 && !slices.ContainsFunc(patterns, func(p string) bool { return value.Glob(p, name) })
	})
}

// matchingStates returns the functions that names select: all of a state, or one function.
func (s sys) matchingStates(patterns ...string) []string {
	if len(patterns) == 1 && patterns[0] == "" {
		patterns = nil
	}
	return s.stateFunctions(patterns)
}

// stateArgspec returns the arguments of state functions and their defaults.
func (s sys) stateArgspec(pattern string) *value.Map {
	report := value.NewMap()
	for _, name := range s.matchingStates(pattern) {
		if d, ok := s.ownOf("states")[name]; ok {
			report.Set(name, specOf(d.Parameters))
			continue
		}
		arguments, open := s.argumentsOf(name)
		names, defaults := value.NewList(), value.NewList()
		for _, a := range arguments {
			names.Append(a.Name)
			if !a.Required {
				defaults.Append(a.Default)
			}
		}
		spec := value.NewMap("args", names, "defaults", nil, "varargs", nil, "kwargs", nil)
		if defaults.Len() > 0 {
			spec.Set("defaults", defaults)
		}
		if open {
			spec.Set("kwargs", true)
		}
		report.Set(name, spec)
	}
	return report
}

func (s sys) argumentsOf(name string) (arguments []module.Argument, open bool) {
	state, function, _ := strings.Cut(name, ".")
	r, ok := s.states().New(state, function)
	if !ok {
		return nil, false
	}
	return module.ArgumentsOf(r)
}

// stateDoc returns the documentation of state functions: declaration, purpose and arguments.
func (s sys) stateDoc(patterns []string) *value.Map {
	texts, book := value.NewMap(), manual.States()
	for _, name := range s.matchingStates(patterns...) {
		if d, ok := s.ownOf("states")[name]; ok {
			state, _, _ := strings.Cut(name, ".")
			if !texts.Has(state) {
				texts.Set(state, docstring(d.Module))
			}
			texts.Set(name, docstring(d.Doc))
			continue
		}
		arguments, open := s.argumentsOf(name)
		var names, words []string
		for _, a := range arguments {
			names = append(names, a.Name)
			if a.Required {
				words = append(words, a.Name)
			} else {
				words = append(words, a.Name+"="+value.Repr(a.Default))
			}
		}
		if open {
			words = append(words, "**kwargs")
		}
		texts.Set(name, book.State(name, strings.Join(words, ", "), names))
	}
	return texts
}
