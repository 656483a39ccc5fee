package jinja

import (
	"github.com/corpus-agent/corpus-agent/state/jinja/syntax"
)

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

// templateStmt compiles the statements that refer to other templates.
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
		c.failHint("SyntaxError", s, "'"+name+"' outside loop",
			"it can only stand inside {% for %}, and not inside a macro there")
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

// target compiles the target of an assignment.
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
	if !ok { // the filter does not exist; running it reports that
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
