package jinja

import "github.com/corpus-agent/corpus-agent/state/jinja/syntax"

func (c *compiler) forLoop(s *syntax.For, fr *cframe) stmt {
	in := fr.inner()
	if s.Recursive {
		in = fr.innerFunction()
	}
	in.loop = true
	out := &forStmt{loop: -1, hasElse: len(s.Else) > 0, at: s.Iter.Offset(), line: s.Line()}
	if s.Recursive || undeclared(s.Body, "loop")["loop"] || hasScopedBlock(s) {
		out.loop = in.fn.slot(in.symbols.parameter("loop"))
	}
	in.symbols.parameters(s.Target)
	in.symbols.analyzeAll(s.Body...)
	otherwise := fr.inner()
	otherwise.fn = in.fn
	if out.hasElse {
		otherwise.symbols.analyzeAll(s.Else...)
	}
	if s.Test != nil {
		out.test = c.loopTest(s, in, fr)
	}
	c.refuseLoopTarget(s)
	out.enter = in.enter()
	out.target = c.target(s.Target, in)
	out.iter = c.expr(s.Iter, fr)
	out.body = c.stmts(s.Body, in)
	if out.hasElse {
		out.elseEnter = otherwise.enter()
		out.otherwise = c.stmts(s.Else, otherwise)
	}
	if s.Recursive {
		out.recursive = &function{slots: len(in.fn.slots)}
	}
	return out
}

// loopTest compiles the condition of a loop as a function inside the function of the loop.
func (c *compiler) loopTest(s *syntax.For, loop, fr *cframe) *loopTest {
	in := fr.innerFunction()
	in.fn.up = loop.fn
	in.symbols.parameters(s.Target)
	in.symbols.analyze(s.Test)
	t := &loopTest{fn: &function{enter: in.enter()}, at: s.Test.Offset(), line: s.Test.Line()}
	t.target = c.target(s.Target, in)
	t.test = c.expr(s.Test, in)
	t.fn.slots = len(in.fn.slots)
	return t
}

func hasScopedBlock(n syntax.Node) bool {
	found := false
	var visit func(n syntax.Node)
	visit = func(n syntax.Node) {
		if b, ok := n.(*syntax.Block); ok && b.Scoped {
			found = true
		}
		syntax.Children(n, visit)
	}
	visit(n)
	return found
}

// refuseLoopTarget records an error if anything in a loop sets the variable loop.
func (c *compiler) refuseLoopTarget(s *syntax.For) {
	var visit func(n syntax.Node)
	visit = func(n syntax.Node) {
		if name, ok := n.(*syntax.Name); ok && name.Access == syntax.Store && name.Name == "loop" {
			c.fail(assertion, name, "Can't assign to special loop variable in for-loop target")
		}
		syntax.Children(n, visit)
	}
	visit(s)
}

// macroCode compiles the common parts of a macro and a call block.
func (c *compiler) macroCode(s *syntax.Signature, body []syntax.Stmt, n syntax.Node, name string,
	fr *cframe) *macroCode {
	in := fr.innerFunction()
	in.checkPrint = false
	code := &macroCode{name: name, caller: -1, kwargs: -1, varargs: -1, at: n.Offset(), line: n.Line()}
	for _, a := range s.Args {
		in.symbols.parameter(a.Name)
	}
	in.symbols.analyzeAll(s.Defaults...)
	in.symbols.analyzeAll(body...)
	c.specialArguments(code, s, undeclared(body, "caller", "kwargs", "varargs"), in, n)
	code.fn = &function{enter: in.enter()}
	seen := map[string]bool{}
	for i, a := range s.Args {
		if seen[a.Name] {
			c.fail("SyntaxError", a, "duplicate argument '"+a.Name+"'")
		}
		seen[a.Name] = true
		arg := macroArg{name: a.Name, slot: in.place(a.Name).slot}
		if d := i - len(s.Args) + len(s.Defaults); d >= 0 {
			arg.fallback = c.expr(s.Defaults[d], in)
		}
		code.args = append(code.args, arg)
	}
	code.fn.body = c.stmts(body, in)
	code.fn.slots = len(in.fn.slots)
	return code
}

// specialArguments assigns slots to caller, kwargs and varargs if the body uses them.
func (c *compiler) specialArguments(code *macroCode, s *syntax.Signature, used map[string]bool, in *cframe,
	n syntax.Node) {
	declared := map[string]int{}
	for i, a := range s.Args {
		declared[a.Name] = i
	}
	if i, explicit := declared["caller"]; explicit {
		code.explicit = true
		if used["caller"] && i < len(s.Args)-len(s.Defaults) {
			c.fail(assertion, n,
				`When defining macros or call blocks the special "caller" argument must be omitted or be given a default.`)
		}
	} else if used["caller"] {
		code.caller = in.fn.slot(in.symbols.parameter("caller"))
	}
	if _, ok := declared["kwargs"]; !ok && used["kwargs"] {
		code.kwargs = in.fn.slot(in.symbols.parameter("kwargs"))
	}
	if _, ok := declared["varargs"]; !ok && used["varargs"] {
		code.varargs = in.fn.slot(in.symbols.parameter("varargs"))
	}
}

func (c *compiler) macro(s *syntax.Macro, fr *cframe) stmt {
	code := c.macroCode(&s.Signature, s.Body, s, s.Name, fr)
	return &macroStmt{code, fr.place(s.Name), fr.export(s.Name)}
}

func (c *compiler) callBlock(s *syntax.CallBlock, fr *cframe) stmt {
	code := c.macroCode(&s.Signature, s.Body, s, "", fr)
	b := &callStmt{code: code, at: s.Call.Offset(), line: s.Line()}
	for _, k := range s.Call.Kwargs {
		if k.Name == "caller" {
			c.fail("SyntaxError", s.Call, "keyword argument repeated: caller")
		}
	}
	b.call = c.call(s.Call, fr)
	return b
}
