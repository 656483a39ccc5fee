package jinja

import (
	"maps"
	"slices"
	"sort"

	"github.com/corpus-agent/corpus-agent/state/jinja/syntax"
)

// compiler turns the tree of a template into what can be run. It walks the tree in the order in
// which Jinja2 writes its Python code, because some mistakes depend on it.
type compiler struct {
	env          *Env
	blocks       map[string]*syntax.Block
	blockOrder   []string
	extends      int  // statements so far
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
	checkPrint bool // output counts only if no other template is extended
	loop       bool // break and continue are allowed
}

// places hands out the slots of a function.
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

// find says where a variable lives: in this function or one around it.
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

// fail notes the first mistake.
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

// blockFunction compiles a block, which knows nothing of the variables around it.
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

// inner is a frame inside this one, in the same function.
func (fr *cframe) inner() *cframe {
	return &cframe{symbols: newSymbols(fr.symbols), fn: fr.fn, checkPrint: fr.checkPrint, loop: fr.loop}
}

// innerFunction is a frame inside this one that is a function of its own.
func (fr *cframe) innerFunction() *cframe {
	in := fr.inner()
	in.fn = newPlaces(fr.fn)
	in.loop = false
	return in
}

// softly is the same frame inside a condition.
func (fr *cframe) softly() *cframe {
	s := *fr
	s.rootlevel, s.soft = false, true
	return &s
}

// enter works out how the variables of the frame start out.
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

// place says where a name lives.
func (fr *cframe) place(name string) place {
	id, ok := fr.symbols.find(name)
	if !ok { // nobody has looked at this name before; it is not to be found anywhere
		id = fr.symbols.define(name, load{kind: loadMissing})
	}
	return fr.fn.find(id)
}

// export is the name if the frame is the template itself, whose variables others can see.
func (fr *cframe) export(name string) string {
	if fr.toplevel {
		return name
	}
	return ""
}

// locals are the variables that an included or imported template sees.
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

func (c *compiler) stmts(body []syntax.Stmt, fr *cframe) []stmt {
	var out []stmt
	for _, s := range body {
		out = append(out, c.stmt(s, fr)...)
		if c.failed != nil {
			return nil
		}
	}
	return out
}

func (c *compiler) stmt(s syntax.Stmt, fr *cframe) []stmt {
	switch s := s.(type) {
	case *syntax.Output:
		return c.output(s, fr)
	case *syntax.If:
		return []stmt{c.condition(s, fr)}
	case *syntax.For:
		return []stmt{c.forLoop(s, fr)}
	case *syntax.Macro:
		return []stmt{c.macro(s, fr)}
	case *syntax.CallBlock:
		return []stmt{c.callBlock(s, fr)}
	case *syntax.FilterBlock:
		return []stmt{c.filterBlock(s, fr)}
	case *syntax.With:
		return []stmt{c.with(s, fr)}
	case *syntax.Scope:
		return []stmt{c.scope(s, fr)}
	case *syntax.ExprStmt:
		return []stmt{&doStmt{c.expr(s.Node, fr), s.Offset(), s.Line()}}
	case *syntax.Assign:
		return []stmt{c.assign(s, fr)}
	case *syntax.AssignBlock:
		return []stmt{c.assignBlock(s, fr)}
	case *syntax.Break:
		return c.loopControl(s, flowBreak, "break", fr)
	case *syntax.Continue:
		return c.loopControl(s, flowContinue, "continue", fr)
	}
	return c.templateStmt(s, fr)
}

// templateStmt compiles what has to do with other templates.
func (c *compiler) templateStmt(s syntax.Stmt, fr *cframe) []stmt {
	switch s := s.(type) {
	case *syntax.Extends:
		return c.extend(s, fr)
	case *syntax.Block:
		return c.block(s, fr)
	case *syntax.Include:
		i := &includeStmt{withContext: s.WithContext, ignoreMissing: s.IgnoreMissing, at: s.Template.Offset(), line: s.Line()}
		i.template = c.expr(s.Template, fr)
		i.locals = fr.locals()
		return []stmt{i}
	case *syntax.Import:
		i := &importStmt{withContext: s.WithContext, export: fr.export(s.Target), at: s.Template.Offset(), line: s.Line()}
		i.template = c.expr(s.Template, fr)
		i.target, i.locals = fr.place(s.Target), fr.locals()
		return []stmt{i}
	case *syntax.FromImport:
		i := &fromImportStmt{withContext: s.WithContext, at: s.Template.Offset(), line: s.Line()}
		i.template = c.expr(s.Template, fr)
		i.locals = fr.locals()
		for _, n := range s.Names {
			i.names = append(i.names, importedName{n.Name, n.Alias, fr.place(n.Alias), fr.toplevel})
		}
		return []stmt{i}
	}
	return nil
}

func (c *compiler) loopControl(s syntax.Stmt, f flow, name string, fr *cframe) []stmt {
	if !fr.loop {
		c.failHint("SyntaxError", s, "'"+name+"' outside loop", "it can only stand inside {% for %}, and not inside a macro there")
	}
	return []stmt{&controlStmt{f}}
}

func (c *compiler) extend(s *syntax.Extends, fr *cframe) []stmt {
	if !fr.toplevel {
		c.fail(assertion, s, "cannot use extend from a non top-level scope")
	}
	e := &extendsStmt{again: c.extends > 0, at: s.Template.Offset(), line: s.Line()}
	e.template = c.expr(s.Template, fr)
	if fr.rootlevel {
		c.knownExtends = true
	}
	c.extends++
	return []stmt{e}
}

func (c *compiler) block(s *syntax.Block, fr *cframe) []stmt {
	if fr.toplevel && c.knownExtends {
		return nil
	}
	b := &blockStmt{name: s.Name, scoped: s.Scoped, required: s.Required, at: s.Offset(), line: s.Line()}
	if s.Scoped {
		b.locals = fr.locals()
	}
	if fr.toplevel && c.extends > 0 {
		return []stmt{&unlessExtended{[]stmt{b}}}
	}
	return []stmt{b}
}

func (c *compiler) output(s *syntax.Output, fr *cframe) []stmt {
	if fr.checkPrint && c.knownExtends {
		return nil
	}
	var out []stmt
	for _, n := range s.Nodes {
		if data, ok := n.(*syntax.TemplateData); ok {
			out = append(out, &textStmt{data.Data, data.Offset()})
			continue
		}
		out = append(out, &printStmt{c.expr(n, fr), n.Offset(), n.Line()})
	}
	if fr.checkPrint {
		return []stmt{&unlessExtended{out}}
	}
	return out
}

func (c *compiler) condition(s *syntax.If, fr *cframe) stmt {
	soft := fr.softly()
	out := &ifStmt{}
	add := func(n *syntax.If) {
		test := c.expr(n.Test, soft)
		out.branches = append(out.branches, branch{test, c.stmts(n.Body, soft), n.Test.Offset(), n.Line()})
	}
	add(s)
	for _, elif := range s.Elif {
		add(elif)
	}
	if s.Else != nil {
		out.branches = append(out.branches, branch{body: c.stmts(s.Else, soft), at: s.Offset(), line: s.Line()})
	}
	return out
}

func (c *compiler) assign(s *syntax.Assign, fr *cframe) stmt {
	a := &assignStmt{at: s.Node.Offset(), line: s.Line()}
	a.target = c.target(s.Target, fr)
	a.node = c.expr(s.Node, fr)
	return a
}

// target compiles what is assigned to.
func (c *compiler) target(n syntax.Expr, fr *cframe) target {
	switch n := n.(type) {
	case *syntax.Name:
		return &slotTarget{fr.place(n.Name), fr.export(n.Name)}
	case *syntax.NSRef:
		return &namespaceTarget{fr.place(n.Name), n.Attr}
	case *syntax.Tuple:
		t := &tupleTarget{}
		for _, item := range n.Items {
			t.items = append(t.items, c.target(item, fr))
		}
		return t
	}
	c.fail("TemplateSyntaxError", n, "can't assign to this")
	return &tupleTarget{}
}

func (c *compiler) assignBlock(s *syntax.AssignBlock, fr *cframe) stmt {
	in := fr.inner()
	in.checkPrint = false
	in.symbols.analyzeAll(s.Body...)
	if s.Filter != nil {
		in.symbols.analyze(s.Filter)
	}
	a := &captureStmt{enter: in.enter(), body: c.stmts(s.Body, in), at: s.Offset(), line: s.Line()}
	a.target = c.target(s.Target, fr)
	if s.Filter != nil {
		a.filter, a.at = c.filterChain(s.Filter, in), s.Filter.Offset()
	}
	return a
}

// filterChain compiles filters that are applied to a captured text.
func (c *compiler) filterChain(f *syntax.Filter, fr *cframe) *filterExpr {
	e, ok := c.filter(f, fr).(*filterExpr)
	if !ok { // the filter is not there; running it says so
		missed := c.filterNamed(f, fr)
		return &filterExpr{filter: func(*Call) (any, error) { return nil, missed }, at: f.Offset()}
	}
	return e
}

func (c *compiler) filterBlock(s *syntax.FilterBlock, fr *cframe) stmt {
	in := fr.inner()
	in.symbols.analyzeAll(s.Body...)
	in.symbols.analyze(s.Filter)
	b := &filterStmt{enter: in.enter(), body: c.stmts(s.Body, in), at: s.Filter.Offset(), line: s.Line()}
	b.filter = c.filterChain(s.Filter, in)
	return b
}

func (c *compiler) with(s *syntax.With, fr *cframe) stmt {
	in := fr.inner()
	in.symbols.analyzeAll(s.Targets...)
	in.symbols.analyzeAll(s.Body...)
	w := &withStmt{enter: in.enter(), at: s.Offset(), line: s.Line()}
	for i, t := range s.Targets {
		w.targets = append(w.targets, c.target(t, in))
		w.values = append(w.values, c.expr(s.Values[i], fr))
	}
	w.body = c.stmts(s.Body, in)
	return w
}

func (c *compiler) scope(s *syntax.Scope, fr *cframe) stmt {
	in := fr.inner()
	in.symbols.analyze(s.Options)
	in.symbols.analyzeAll(s.Body...)
	enter := in.enter()
	body := []stmt{&doStmt{c.expr(s.Options, in), s.Options.Offset(), s.Line()}}
	return &scopeStmt{enter, append(body, c.stmts(s.Body, in)...)}
}
