package jinja

import (
	"slices"

	"github.com/corpus-agent/corpus-agent/state/jinja/syntax"
)

// Jinja2 compiles a template to Python functions, and its scoping rules follow from Python's local variables. So the
// slots of variables are assigned as in Jinja2: every frame (the template, a loop, a with block, a macro) has symbols;
// a name that is only read is looked up in the context when the frame is entered, and one that is set is initialized
// with the same name of an outer frame, or with missing.

// ident is a local variable of the Python functions: a name and the depth of its frame.
type ident struct {
	level int
	name  string
}

type loadKind uint8

const (
	loadParam   loadKind = iota // set by the code that enters the frame
	loadResolve                 // from the context
	loadAlias                   // from an outer frame
	loadMissing                 // nowhere
)

// load says how a variable is initialized when its frame is entered.
type load struct {
	kind loadKind
	from ident // of loadAlias
}

// symbols holds the variables of one frame.
type symbols struct {
	level  int
	parent *symbols
	refs   map[string]ident
	loads  map[ident]load
	order  []ident // keys of loads in their order
	stores map[string]bool
}

func newSymbols(parent *symbols) *symbols {
	s := &symbols{parent: parent, refs: map[string]ident{}, loads: map[ident]load{}, stores: map[string]bool{}}
	if parent != nil {
		s.level = parent.level + 1
	}
	return s
}

func (s *symbols) copy() *symbols {
	c := &symbols{level: s.level, parent: s.parent, order: slices.Clone(s.order)}
	c.refs, c.loads, c.stores = map[string]ident{}, map[ident]load{}, map[string]bool{}
	c.update(s)
	return c
}

// update copies the symbols of another frame of the same level.
func (s *symbols) update(from *symbols) {
	for name, id := range from.refs {
		s.refs[name] = id
	}
	for _, id := range from.order {
		s.setLoad(id, from.loads[id])
	}
	for name := range from.stores {
		s.stores[name] = true
	}
}

func (s *symbols) setLoad(id ident, l load) {
	if _, ok := s.loads[id]; !ok {
		s.order = append(s.order, id)
	}
	s.loads[id] = l
}

func (s *symbols) define(name string, l load) ident {
	id := ident{s.level, name}
	s.refs[name] = id
	s.setLoad(id, l)
	return id
}

// find returns the variable of a name in this frame or an outer one.
func (s *symbols) find(name string) (ident, bool) {
	for ; s != nil; s = s.parent {
		if id, ok := s.refs[name]; ok {
			return id, true
		}
	}
	return ident{}, false
}

func (s *symbols) store(name string) {
	s.stores[name] = true
	if _, ok := s.refs[name]; ok {
		return
	}
	if outer, ok := s.parent.find(name); ok {
		s.define(name, load{loadAlias, outer})
		return
	}
	s.define(name, load{kind: loadMissing})
}

func (s *symbols) read(name string) {
	if _, ok := s.find(name); !ok {
		s.define(name, load{kind: loadResolve})
	}
}

func (s *symbols) parameter(name string) ident {
	s.stores[name] = true
	return s.define(name, load{kind: loadParam})
}

// branches merges the symbols of the branches of a condition. A name that only some of them set starts with its value
// outside.
func (s *symbols) branches(branches ...*symbols) {
	counts := map[string]int{}
	for _, b := range branches {
		for name := range b.stores {
			if !s.stores[name] {
				counts[name]++
			}
		}
	}
	for _, b := range branches {
		s.update(b)
	}
	for name, count := range counts {
		if count == len(branches) {
			continue
		}
		id, _ := s.find(name)
		if outer, ok := s.parent.find(name); ok {
			s.setLoad(id, load{loadAlias, outer})
			continue
		}
		s.setLoad(id, load{kind: loadResolve})
	}
}

// stored returns the names set in this frame and the outer ones, each with its innermost variable.
func (s *symbols) stored() map[string]ident {
	all := map[string]ident{}
	for frame := s; frame != nil; frame = frame.parent {
		for name := range frame.stores {
			if _, ok := all[name]; !ok {
				all[name], _ = s.find(name)
			}
		}
	}
	return all
}

// analyzeAll visits the nodes of a frame.
func (s *symbols) analyzeAll(nodes ...syntax.Node) {
	for _, n := range nodes {
		s.analyze(n)
	}
}

// analyze finds the names that a node reads and sets in this frame. It stops at nodes that open a frame of their own.
func (s *symbols) analyze(n syntax.Node) {
	switch n := n.(type) {
	case nil:
	case *syntax.Name:
		s.name(n)
	case *syntax.NSRef:
		s.read(n.Name)
	case *syntax.If:
		s.condition(n)
	case *syntax.Macro:
		s.store(n.Name)
	case *syntax.Import:
		s.analyze(n.Template)
		s.store(n.Target)
	case *syntax.FromImport:
		s.analyze(n.Template)
		for _, name := range n.Names {
			s.store(name.Alias)
		}
	case *syntax.Assign:
		s.analyze(n.Node)
		s.analyze(n.Target)
	case *syntax.AssignBlock:
		s.analyze(n.Target)
	case *syntax.For:
		s.analyze(n.Iter)
	case *syntax.CallBlock:
		s.analyze(n.Call)
	case *syntax.FilterBlock:
		s.analyze(n.Filter)
	case *syntax.With:
		s.analyzeAll(n.Values...)
	case *syntax.Scope, *syntax.Block:
	default:
		syntax.Children(n, s.analyze)
	}
}

func (s *symbols) name(n *syntax.Name) {
	switch n.Access {
	case syntax.Load:
		s.read(n.Name)
	case syntax.Store:
		s.store(n.Name)
	case syntax.Param:
		s.parameter(n.Name)
	}
}

func (s *symbols) condition(n *syntax.If) {
	s.analyze(n.Test)
	then, elif, otherwise := s.copy(), s.copy(), s.copy()
	then.analyzeAll(n.Body...)
	for _, e := range n.Elif {
		elif.analyze(e)
	}
	otherwise.analyzeAll(n.Else...)
	s.branches(then, elif, otherwise)
}

// parameters declares the names of a target as parameters.
func (s *symbols) parameters(target syntax.Expr) {
	switch t := target.(type) {
	case *syntax.Name:
		s.parameter(t.Name)
	case *syntax.Tuple:
		for _, item := range t.Items {
			s.parameters(item)
		}
	}
}

// undeclared returns those of the names that are read in the nodes before they are set there. It visits inner frames,
// but not blocks.
func undeclared(nodes []syntax.Stmt, names ...string) map[string]bool {
	watched, found := map[string]bool{}, map[string]bool{}
	for _, n := range names {
		watched[n] = true
	}
	var visit func(n syntax.Node)
	visit = func(n syntax.Node) {
		switch n := n.(type) {
		case *syntax.Block:
			return
		case *syntax.Name:
			if n.Access == syntax.Load && watched[n.Name] {
				found[n.Name] = true
			} else {
				delete(watched, n.Name)
			}
		}
		syntax.Children(n, visit)
	}
	for _, n := range nodes {
		visit(n)
	}
	return found
}
