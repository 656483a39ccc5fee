// Package sys implements sys.*: which functions and states there are, their arguments and their documentation.
package sys

import (
	"maps"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/function/manual"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// sys describes the functions of a table, and those of states.
type sys struct {
	*function.Facts
	all function.Table
}

// Functions returns the functions of sys that templates may call.
func Functions(f *function.Facts, all function.Table) function.Table {
	s := sys{f, all}
	return function.Table{
		"sys.list_functions": function.Of("*args, **kwargs", func(patterns []string, _ *value.Map) []string {
			return s.functions(patterns)
		}),
		"sys.list_modules":   function.Of("*args", s.modules),
		"sys.argspec":        function.Of("module=''", s.argspec),
		"sys.doc":            function.Of("*args", s.doc),
		"sys.reload_modules": function.Of("", func() bool { return true }),

		"sys.list_state_functions": function.Of("*args, **kwargs", func(patterns []string, _ *value.Map) []string {
			return s.stateFunctions(patterns)
		}),
		"sys.list_state_modules": function.Of("*args", s.stateModules),
		"sys.state_argspec":      function.Of("module=''", s.stateArgspec),
		"sys.state_doc":          function.Of("*args", s.stateDoc),

		"sys.list_returners":          function.Of("*args", s.returners),
		"sys.list_returner_functions": function.Of("*args, **kwargs", s.returnerFunctions),
		"sys.returner_doc":            function.Of("*args", s.returnerDoc),
		"sys.list_renderers":          function.Of("*args", s.renderers),
		"sys.renderer_doc":            function.Of("*args", s.rendererDoc),
	}
}

// functions returns the names of functions: all, those of modules, or those that match globs.
func (s sys) functions(patterns []string) []string {
	names := s.all.Names()
	for name := range s.Calls {
		names = append(names, name)
	}
	if own := s.own(); len(own) > 0 {
		names = slices.DeleteFunc(names, func(name string) bool { return replaced(own, name) })
		names = slices.AppendSeq(names, maps.Keys(own))
	}
	slices.Sort(names)
	return fitting(names, patterns)
}

// fitting returns the names of some modules, or those that match globs. Without patterns it returns all names.
func fitting(names, patterns []string) []string {
	if len(patterns) == 0 {
		return names
	}
	return slices.DeleteFunc(names, func(name string) bool {
		return !slices.ContainsFunc(patterns, func(pattern string) bool {
			if strings.ContainsAny(pattern, "*.") {
				return value.Glob(pattern, name)
			}
			return strings.HasPrefix(name, pattern+".")
		})
	})
}

func (s sys) modules(patterns []string) []string {
	return modulesOf(s.functions(patterns))
}

// modulesOf returns the modules of functions, which must be sorted.
func modulesOf(functions []string) []string {
	names := []string{}
	for _, name := range functions {
		module, _, _ := strings.Cut(name, ".")
		names = append(names, module)
	}
	return slices.Compact(names)
}

// argspec returns parameters and defaults, by function.
func (s sys) argspec(pattern string) (*value.Map, error) {
	report := value.NewMap()
	for _, name := range s.matching(pattern) {
		parameters, err := s.parameters(name)
		if err != nil {
			return nil, err
		}
		report.Set(name, specOf(parameters))
	}
	return report, nil
}

// own returns the functions of the tree's modules.
func (s sys) own() map[string]function.Described { return s.ownOf("modules") }

// ownOf returns the functions of the tree's modules of a kind.
func (s sys) ownOf(kind string) map[string]function.Described {
	if s.Own == nil {
		return nil
	}
	return s.Own(kind)
}

// replaced reports whether a module of the tree replaces the module of a function.
func replaced(own map[string]function.Described, name string) bool {
	module, _, _ := strings.Cut(name, ".")
	for other := range own {
		if strings.HasPrefix(other, module+".") {
			return true
		}
	}
	return false
}

func (s sys) parameters(name string) ([]function.Parameter, error) {
	if d, ok := s.own()[name]; ok {
		return d.Parameters, nil
	}
	if f := s.all[name]; f != nil {
		return f.Parameters()
	}
	return function.ParseSignature(s.Calls[name])
}

func (s sys) matching(pattern string) []string {
	switch {
	case pattern == "":
		return s.functions(nil)
	case s.all.Has(pattern) && !replaced(s.own(), pattern) || s.Calls[pattern] != "":
		return []string{pattern}
	}
	return s.functions([]string{pattern})
}

func specOf(parameters []function.Parameter) *value.Map {
	names, defaults := value.NewList(), value.NewList()
	spec := value.NewMap("args", names, "defaults", nil, "varargs", nil, "kwargs", nil)
	for _, p := range parameters {
		switch p.Kind {
		case function.Rest:
			spec.Set("varargs", true)
		case function.Keywords:
			spec.Set("kwargs", true)
		case function.Plain:
			names.Append(p.Name)
			if p.Optional {
				defaults.Append(withoutUnset(p.Default))
			}
		}
	}
	if defaults.Len() > 0 {
		spec.Set("defaults", defaults)
	}
	if names.Len() == 0 {
		spec.Set("args", nil)
	}
	return spec
}

func withoutUnset(v any) any {
	if v == (function.Unset{}) {
		return nil
	}
	return v
}

// doc returns the documentation of functions: usage, purpose and arguments.
func (s sys) doc(patterns []string) (*value.Map, error) {
	texts, book := value.NewMap(), manual.Functions()
	names := s.functions(nil)
	for _, name := range names {
		if len(patterns) > 0 &&
			!slices.ContainsFunc(patterns, func(p string) bool { return slices.Contains(s.matching(p), name) }) {
			continue
		}
		if d, ok := s.own()[name]; ok {
			texts.Set(name, docstring(d.Doc))
			continue
		}
		parameters, err := s.parameters(name)
		if err != nil {
			return nil, err
		}
		var arguments []string
		for _, p := range parameters {
			arguments = append(arguments, p.Name)
		}
		texts.Set(name, book.Function(name, s.signature(name), arguments))
	}
	return texts, nil
}

// docstring returns the documentation of one of the tree's functions as Salt prints it, without the directives of
// reStructuredText; nil for none.
func docstring(doc string) any {
	if doc == "" {
		return nil
	}
	for begin, rest, found := strings.Cut(doc, ".. code-block:: "); found; begin, rest, found = strings.Cut(doc,
		".. code-block:: ") {
		_, rest, _ = strings.Cut(rest, "\n")
		doc = strings.TrimRight(begin, " ") + strings.TrimPrefix(rest, "\n")
	}
	return strings.NewReplacer(".. note::", "Note:", ".. warning::", "Warning:", ".. versionadded::", "New in version",
		".. versionchanged::", "Changed in version").Replace(doc)
}

func (s sys) signature(name string) string {
	if f := s.all[name]; f != nil {
		return f.Signature()
	}
	return s.Calls[name]
}
