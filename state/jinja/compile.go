package jinja

import (
	"maps"
	"slices"
	"sort"

	"github.com/corpus-agent/corpus-agent/state/jinja/syntax"
)

// compiler converts the tree of a template to functions that run it. It walks the tree in the order in which Jinja2
// writes its Python code, because some mistakes depend on it.
type compiler struct {
	env          *Env
	blocks       map[string]*syntax.Block
	blockOrder   []string
	extends      int  // number of extends statements so far
	knownExtends bool // one of them always runs
	failed       *syntax.Error
}

// cframe is a frame at compile time.
type cframe struct {
	symbols    *symbols
	fn         *places
	toplevel   bool // the template itself, conditions included
	rootlevel  bool // the template itself, conditions not included
	soft       bool // inside a condition
	checkPrint bool // output is printed only if no other template is extended
	loop       bool // break and continue are allowed
}

// places assigns the slots of a function.
type places struct {
	slots map[ident]int
	up    *places
}

func newPlaces(up *places) *places { return &places{slots: map[ident]int{}, up: up} }

func (p *places) slot(id ident) int {
	if n, ok := p.slots[id]; ok {
		return n
	}
	p.slots[id] = len(p.slots)
	return p.slots[id]
}

// find returns the slot of a variable, in this function or one around it.
func (p *places) find(id ident) place {
	up := 0
	for fn := p; fn != nil; fn = fn.up {
		if n, ok := fn.slots[id]; ok {
			return place{up, n}
		}
		up++
	}
	return place{0, p.slot(id)}
}

func compileTemplate(t *Template, tree *syntax.Template) error {
	c := &compiler{env: t.env, blocks: map[string]*syntax.Block{}}
	hasExtends := c.collect(tree.Body)
	if c.failed == nil {
		t.root = c.rootFunction(tree, hasExtends)
	}
	t.blocks = map[string]*function{}
	for _, name := range c.blockOrder {
		if c.failed == nil {
			t.blocks[name] = c.blockFunction(c.blocks[name])
		}
	}
	if c.failed != nil {
		return c.failed
	}
	return nil
}

// fail records the first mistake.
func (c *compiler) fail(kind string, n syntax.Node, message string) {
	if c.failed == nil {
		c.failed = &syntax.Error{Kind: kind, Message: message, Line: n.Line(), Offset: n.Offset()}
	}
}

func (c *compiler) failHint(kind string, n syntax.Node, message, hint string) {
	if c.failed == nil {
		c.fail(kind, n, message)
		c.failed.Hint = hint
	}
}

const assertion = "TemplateAssertionError"

// collect finds the blocks of the template, and reports whether it extends another.
func (c *compiler) collect(body []syntax.Stmt) (hasExtends bool) {
	var visit func(n syntax.Node)
	visit = func(n syntax.Node) {
		switch n := n.(type) {
		case *syntax.Extends:
			hasExtends = true
		case *syntax.Block:
			if _, twice := c.blocks[n.Name]; twice {
				c.fail(assertion, n, "block '"+n.Name+"' defined twice")
			}
			c.blocks[n.Name] = n
			c.blockOrder = append(c.blockOrder, n.Name)
		}
		syntax.Children(n, visit)
	}
	for _, n := range body {
		visit(n)
	}
	return hasExtends
}

func (c *compiler) rootFunction(tree *syntax.Template, hasExtends bool) *function {
	fr := &cframe{symbols: newSymbols(nil), fn: newPlaces(nil), toplevel: true, rootlevel: true, checkPrint: hasExtends}
	specials := &specialsStmt{self: -1, super: -1}
	if undeclared(tree.Body, "self")["self"] {
		specials.self = fr.fn.slot(fr.symbols.parameter("self"))
	}
	fr.symbols.analyzeAll(tree.Body...)
	return c.function(fr, tree.Body, specials)
}

// blockFunction compiles a block, which does not see the variables around it.
func (c *compiler) blockFunction(b *syntax.Block) *function {
	fr := &cframe{symbols: newSymbols(nil), fn: newPlaces(nil)}
	names := undeclared(b.Body, "self", "super")
	specials := &specialsStmt{self: -1, super: -1, name: b.Name}
	if names["self"] {
		specials.self = fr.fn.slot(fr.symbols.parameter("self"))
	}
	if names["super"] {
		specials.super = fr.fn.slot(fr.symbols.parameter("super"))
	}
	fr.symbols.analyzeAll(b.Body...)
	fn := c.function(fr, b.Body, specials)
	specials.fn = fn
	return fn
}

func (c *compiler) function(fr *cframe, body []syntax.Stmt, specials *specialsStmt) *function {
	fn := &function{enter: fr.enter()}
	if specials.self >= 0 || specials.super >= 0 {
		fn.body = append(fn.body, specials)
	}
	fn.body = append(fn.body, c.stmts(body, fr)...)
	fn.slots = len(fr.fn.slots)
	return fn
}

// inner returns a frame inside this one, in the same function.
func (fr *cframe) inner() *cframe {
	return &cframe{symbols: newSymbols(fr.symbols), fn: fr.fn, checkPrint: fr.checkPrint, loop: fr.loop}
}

// innerFunction returns a frame inside this one that is a function of its own.
func (fr *cframe) innerFunction() *cframe {
	in := fr.inner()
	in.fn = newPlaces(fr.fn)
	in.loop = false
	return in
}

// softly returns the same frame inside a condition.
func (fr *cframe) softly() *cframe {
	s := *fr
	s.rootlevel, s.soft = false, true
	return &s
}

// enter returns the initial values of the variables of the frame.
func (fr *cframe) enter() []entry {
	entries := make([]entry, 0, len(fr.symbols.order))
	for _, id := range fr.symbols.order {
		l := fr.symbols.loads[id]
		e := entry{kind: l.kind, slot: fr.fn.slot(id), name: id.name}
		if l.kind == loadAlias {
			e.from = fr.fn.find(l.from)
		}
		entries = append(entries, e)
	}
	return entries
}

// place returns the slot of a name.
func (fr *cframe) place(name string) place {
	id, ok := fr.symbols.find(name)
	if !ok { // the name was not looked up before and is defined nowhere
		id = fr.symbols.define(name, load{kind: loadMissing})
	}
	return fr.fn.find(id)
}

// export returns the name if the frame is the template itself, whose variables other templates can see, or "".
func (fr *cframe) export(name string) string {
	if fr.toplevel {
		return name
	}
	return ""
}

// locals returns the variables that an included or imported template sees.
func (fr *cframe) locals() []local {
	stored := fr.symbols.stored()
	names := slices.Collect(maps.Keys(stored))
	sort.Strings(names)
	locals := make([]local, len(names))
	for i, name := range names {
		locals[i] = local{name, fr.fn.find(stored[name])}
	}
	return locals
}
