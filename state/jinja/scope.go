package jinja

import "maps"

// missingType is the type of missing, which marks a variable that has no value. It has a field so that two pointers to
// it differ.
type missingType struct{ _ byte }

var missing = &missingType{}

// scope holds the variables of a template that Jinja2 calls its context: those it was given, and those it sets at its
// top level.
type scope struct {
	given    map[string]any // never changed
	vars     map[string]any
	exported map[string]bool
	blocks   map[string][]*block // definitions by the name of the block, that of the child template first
}

// block is one definition of a block, in a template.
type block struct {
	fn       *function
	template *Template
}

// newScope returns the scope of a template. Given and locals belong to the caller; locals override given unless they
// are missing.
func newScope(given, locals map[string]any, t *Template) *scope {
	s := &scope{given: given, blocks: make(map[string][]*block, len(t.blocks))}
	for name, fn := range t.blocks {
		s.blocks[name] = []*block{{fn, t}}
	}
	if len(locals) > 0 {
		s.given = maps.Clone(given)
		for name, v := range locals {
			if v != any(missing) {
				s.given[name] = v
			}
		}
	}
	return s
}

// resolve looks up a name; it returns missing if there is none.
func (s *scope) resolve(name string) any {
	if v, ok := s.vars[name]; ok {
		return v
	}
	if v, ok := s.given[name]; ok {
		return v
	}
	return missing
}

// set sets a variable at the top level. A name with a leading underscore is not exported.
func (s *scope) set(name string, v any, export bool) {
	if s.vars == nil {
		s.vars, s.exported = map[string]any{}, map[string]bool{}
	}
	s.vars[name] = v
	if name[0] == '_' {
		return
	}
	if export {
		s.exported[name] = true
	} else {
		delete(s.exported, name)
	}
}

// all returns all variables of the scope.
func (s *scope) all() map[string]any {
	if len(s.vars) == 0 {
		return s.given
	}
	all := make(map[string]any, len(s.given)+len(s.vars))
	maps.Copy(all, s.given)
	maps.Copy(all, s.vars)
	return all
}

// exports returns the variables that an importing template sees.
func (s *scope) exports() map[string]any {
	names := make(map[string]any, len(s.exported))
	for name := range s.exported {
		names[name] = s.vars[name]
	}
	return names
}

// names returns the names of all variables, for hints. The nil scope has none.
func (s *scope) names() []string {
	if s == nil {
		return nil
	}
	var names []string
	for name := range s.given {
		names = append(names, name)
	}
	for name := range s.vars {
		names = append(names, name)
	}
	return names
}

// derived returns a new scope with the variables of this one, and some locals.
func (s *scope) derived(locals map[string]any) *scope {
	d := &scope{given: maps.Clone(s.all()), blocks: make(map[string][]*block, len(s.blocks))}
	for name, v := range locals {
		if v != any(missing) {
			d.given[name] = v
		}
	}
	for name, list := range s.blocks {
		d.blocks[name] = append([]*block(nil), list...)
	}
	return d
}
