package syntax

import "github.com/corpus-agent/corpus-agent/state/value"

// postfix reads attributes, items and calls.
func (p *parser) postfix(e Expr) (Expr, error) {
	err := error(nil)
	for n := 0; err == nil; n++ {
		if err := p.chain(n); err != nil {
			return nil, err
		}
		switch p.current().kind {
		case tokDot:
			e, err = p.attribute(e)
		case tokLbracket:
			e, err = p.subscript(e)
		case tokLparen:
			e, err = p.call(e)
		default:
			return e, nil
		}
	}
	return nil, err
}

// filterExpr reads filters, tests, and calls of their results.
func (p *parser) filterExpr(e Expr) (Expr, error) {
	err := error(nil)
	for n := 0; err == nil; n++ {
		if err := p.chain(n); err != nil {
			return nil, err
		}
		switch t := p.current(); {
		case t.kind == tokPipe:
			e, err = p.filters(e, false)
		case t.isName("is"):
			e, err = p.test(e)
		case t.kind == tokLparen:
			e, err = p.call(e)
		default:
			return e, nil
		}
	}
	return nil, err
}

func (p *parser) attribute(e Expr) (Expr, error) {
	dot := p.next()
	t := p.next()
	switch t.kind {
	case tokName:
		return &Getattr{position{dot.line, t.at}, e, t.text}, nil
	case tokInteger:
		n, err := value.ParseInt(t.text, 0)
		if err != nil {
			return nil, fail(t.line, t.at, "%s", err)
		}
		return &Getitem{position{dot.line, t.at}, e, &Const{position{t.line, t.at}, n}}, nil
	}
	return nil, fail(t.line, t.at, "expected name or number")
}

func (p *parser) subscript(e Expr) (Expr, error) {
	at := p.start()
	var args []Expr
	for p.current().kind != tokRbracket {
		if len(args) > 0 {
			if _, err := p.expect(tokComma); err != nil {
				return nil, err
			}
		}
		arg, err := p.subscripted()
		if err != nil {
			return nil, err
		}
		args = append(args, arg)
	}
	p.next()
	if len(args) == 1 {
		return &Getitem{at, e, args[0]}, nil
	}
	return &Getitem{at, e, &Tuple{at, args}}, nil
}

// subscripted reads an index or a slice.
func (p *parser) subscripted() (Expr, error) {
	s := &Slice{position: p.here()}
	var err error
	if p.current().kind != tokColon {
		if s.Start, err = p.expression(); err != nil || p.current().kind != tokColon {
			return s.Start, err
		}
	}
	p.next()
	if s.Stop, err = p.slicePart(); err != nil {
		return nil, err
	}
	if p.skipIf(tokColon) {
		s.Step, err = p.slicePart()
	}
	return s, err
}

// slicePart reads an expression that may be missing.
func (p *parser) slicePart() (Expr, error) {
	switch p.current().kind {
	case tokColon, tokRbracket, tokComma:
		return nil, nil
	}
	return p.expression()
}

func (p *parser) call(e Expr) (Expr, error) {
	t := p.current()
	args, err := p.arguments()
	return &Call{position{t.line, t.at}, e, args}, err
}

// arguments reads (a, *b, c=d, **e).
func (p *parser) arguments() (Arguments, error) {
	var a Arguments
	paren, err := p.expect(tokLparen)
	if err != nil {
		return a, err
	}
	for first := true; p.current().kind != tokRparen; first = false {
		if !first {
			if _, err := p.expect(tokComma); err != nil {
				return a, err
			}
			if p.current().kind == tokRparen {
				break
			}
		}
		ok, err := p.argument(&a)
		if err != nil {
			return a, err
		}
		if !ok {
			return a, fail(paren.line, paren.at, "invalid syntax for function call expression")
		}
	}
	p.next()
	return a, nil
}

// argument reads one argument, and reports whether it may follow the others.
func (p *parser) argument(a *Arguments) (ok bool, err error) {
	switch t := p.current(); {
	case t.kind == tokMul:
		p.next()
		ok = a.DynArgs == nil && a.DynKwargs == nil
		a.DynArgs, err = p.expression()
	case t.kind == tokPow:
		p.next()
		ok = a.DynKwargs == nil
		a.DynKwargs, err = p.expression()
	case t.kind == tokName && p.look().kind == tokAssign:
		p.next()
		p.next()
		ok = a.DynKwargs == nil
		k := Keyword{Name: t.text}
		k.Value, err = p.expression()
		a.Kwargs = append(a.Kwargs, k)
	default:
		ok = a.DynArgs == nil && a.DynKwargs == nil && len(a.Kwargs) == 0
		var e Expr
		e, err = p.expression()
		a.Args = append(a.Args, e)
	}
	return ok, err
}

// dottedName reads the name of a filter or a test.
func (p *parser) dottedName() (name string, at position, err error) {
	t, err := p.expect(tokName)
	name = t.text
	for err == nil && p.skipIf(tokDot) {
		var part token
		part, err = p.expect(tokName)
		name += "." + part.text
	}
	return name, position{t.line, t.at}, err
}

// filters reads | filter | filter(...). Inline starts with the name of a filter.
func (p *parser) filters(e Expr, inline bool) (Expr, error) {
	for n := 0; p.current().kind == tokPipe || inline; n++ {
		if err := p.chain(n); err != nil {
			return nil, err
		}
		if !inline {
			p.next()
		}
		inline = false
		name, at, err := p.dottedName()
		if err != nil {
			return nil, err
		}
		f := &Filter{position: at, Node: e, Name: name}
		if p.current().kind == tokLparen {
			if f.Arguments, err = p.arguments(); err != nil {
				return nil, err
			}
		}
		e = f
	}
	return e, nil
}

// test reads is name or is not name, and the arguments of the test.
func (p *parser) test(e Expr) (Expr, error) {
	at := p.start()
	negated := p.skipName("not")
	name, _, err := p.dottedName()
	if err != nil {
		return nil, err
	}
	t := &Test{position: at, Node: e, Name: name}
	if err := p.testArguments(t); err != nil {
		return nil, err
	}
	if negated {
		return &Unary{at, "not", t}, nil
	}
	return t, nil
}

// testArguments reads the arguments of a test: those between parentheses, or one without them.
func (p *parser) testArguments(t *Test) (err error) {
	switch {
	case p.current().kind == tokLparen:
		t.Arguments, err = p.arguments()
	case p.startsTestArgument():
		var arg Expr
		if arg, err = p.testArgument(); err == nil {
			t.Args = []Expr{arg}
		}
	}
	return err
}

func (p *parser) startsTestArgument() bool {
	switch t := p.current(); t.kind {
	case tokName:
		return t.text != "else" && t.text != "or" && t.text != "and"
	case tokString, tokInteger, tokFloat, tokLbracket, tokLbrace:
		return true
	}
	return false
}

func (p *parser) testArgument() (Expr, error) {
	if p.current().isName("is") {
		return nil, p.fail("You cannot chain multiple tests with is")
	}
	e, err := p.primary()
	if err != nil {
		return nil, err
	}
	return p.postfix(e)
}
