package syntax

import (
	"strings"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// here returns the position of the current token.
func (p *parser) here() position {
	t := p.current()
	return position{t.line, t.at}
}

// expression reads x if test else y.
func (p *parser) expression() (Expr, error) {
	if err := p.deeper(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	at := p.here()
	e, err := p.or()
	for err == nil && p.skipName("if") {
		cond := &CondExpr{position: at, Then: e}
		if cond.Test, err = p.or(); err != nil {
			break
		}
		if p.skipName("else") {
			cond.Else, err = p.expression()
		}
		e, at = cond, p.here()
	}
	return e, err
}

// leftAssociative reads operand op operand op operand.
func (p *parser) leftAssociative(operand func() (Expr, error), operator func(token) bool) (Expr, error) {
	at := p.here()
	left, err := operand()
	for n := 0; err == nil && operator(p.current()); n++ {
		if err := p.chain(n); err != nil {
			return nil, err
		}
		op := p.next()
		var right Expr
		if right, err = operand(); err == nil {
			left = &Binary{at, op.describe(), left, right}
			at = position{p.current().line, at.at}
		}
	}
	return left, err
}

func (p *parser) or() (Expr, error) {
	return p.leftAssociative(p.and, func(t token) bool { return t.isName("or") })
}

func (p *parser) and() (Expr, error) {
	return p.leftAssociative(p.not, func(t token) bool { return t.isName("and") })
}

func (p *parser) not() (Expr, error) {
	if !p.current().isName("not") {
		return p.compare()
	}
	if err := p.deeper(); err != nil {
		return nil, err
	}
	at := p.start()
	e, err := p.not()
	p.depth--
	return &Unary{at, "not", e}, err
}

func (p *parser) compare() (Expr, error) {
	at := p.here()
	e, err := p.sum()
	if err != nil {
		return nil, err
	}
	var ops []Operand
	for {
		op := ""
		switch t := p.current(); {
		case t.kind >= tokEq && t.kind <= tokLe:
			op = t.kind.String()
		case t.isName("in"):
			op = "in"
		case t.isName("not") && p.look().isName("in"):
			op = "not in"
			p.next()
		}
		if op == "" {
			break
		}
		p.next()
		right, err := p.sum()
		if err != nil {
			return nil, err
		}
		ops = append(ops, Operand{op, right})
		at.line = p.current().line
	}
	if len(ops) == 0 {
		return e, nil
	}
	return &Compare{at, e, ops}, nil
}

func (p *parser) sum() (Expr, error) {
	return p.leftAssociative(p.concat, func(t token) bool { return t.kind == tokAdd || t.kind == tokSub })
}

func (p *parser) concat() (Expr, error) {
	at := p.here()
	e, err := p.product()
	nodes := []Expr{e}
	for err == nil && p.skipIf(tokTilde) {
		e, err = p.product()
		nodes = append(nodes, e)
	}
	if len(nodes) == 1 || err != nil {
		return e, err
	}
	return &Concat{at, nodes}, nil
}

func (p *parser) product() (Expr, error) {
	return p.leftAssociative(p.power, func(t token) bool { return t.kind >= tokMul && t.kind <= tokMod })
}

func (p *parser) power() (Expr, error) {
	return p.leftAssociative(func() (Expr, error) { return p.unary(true) }, func(t token) bool { return t.kind == tokPow })
}

// unary reads a sign, a value, and the operators after the value. A filter does not belong to the operand of a sign.
func (p *parser) unary(withFilter bool) (Expr, error) {
	at := p.here()
	var e Expr
	var err error
	if op := p.current(); op.kind == tokSub || op.kind == tokAdd {
		if err := p.deeper(); err != nil {
			return nil, err
		}
		p.next()
		e, err = p.unary(false)
		p.depth--
		e = &Unary{at, op.kind.String(), e}
	} else {
		e, err = p.primary()
	}
	if err == nil {
		e, err = p.postfix(e)
	}
	if err == nil && withFilter {
		e, err = p.filterExpr(e)
	}
	return e, err
}

func (p *parser) primary() (Expr, error) {
	t := p.current()
	at := position{t.line, t.at}
	switch t.kind {
	case tokName:
		p.next()
		return nameOrConstant(at, t.text), nil
	case tokString:
		var b strings.Builder
		for p.current().kind == tokString {
			b.WriteString(p.next().text)
		}
		return &Const{at, b.String()}, nil
	case tokInteger:
		p.next()
		n, err := value.ParseInt(t.text, 0)
		if err != nil {
			return nil, fail(t.line, t.at, "%s", err)
		}
		return &Const{at, n}, nil
	case tokFloat:
		p.next()
		f, err := value.ParseFloat(t.text)
		if err != nil {
			return nil, fail(t.line, t.at, "%s", err)
		}
		return &Const{at, f}, nil
	case tokLparen:
		p.next()
		if err := p.deeper(); err != nil {
			return nil, err
		}
		e, err := p.tuple(tupleOptions{conditional: true, parentheses: true})
		p.depth--
		if err == nil {
			_, err = p.expect(tokRparen)
		}
		return e, err
	case tokLbracket:
		return p.list()
	case tokLbrace:
		return p.dict()
	}
	return nil, fail(t.line, t.at, "unexpected '%s'", t.describe())
}

func nameOrConstant(at position, name string) Expr {
	switch name {
	case "true", "True":
		return &Const{at, true}
	case "false", "False":
		return &Const{at, false}
	case "none", "None":
		return &Const{at, nil}
	}
	return &Name{at, name, Load}
}

func (p *parser) list() (Expr, error) {
	l := &List{position: p.start()}
	for p.current().kind != tokRbracket {
		if len(l.Items) > 0 {
			if _, err := p.expect(tokComma); err != nil {
				return nil, err
			}
			if p.current().kind == tokRbracket {
				break
			}
		}
		item, err := p.expression()
		if err != nil {
			return nil, err
		}
		l.Items = append(l.Items, item)
	}
	p.next()
	return l, nil
}

func (p *parser) dict() (Expr, error) {
	d := &Dict{position: p.start()}
	for p.current().kind != tokRbrace {
		if len(d.Pairs) > 0 {
			if _, err := p.expect(tokComma); err != nil {
				return nil, err
			}
			if p.current().kind == tokRbrace {
				break
			}
		}
		k, err := p.expression()
		if err != nil {
			return nil, err
		}
		if _, err := p.expect(tokColon); err != nil {
			return nil, err
		}
		v, err := p.expression()
		if err != nil {
			return nil, err
		}
		d.Pairs = append(d.Pairs, Pair{k, v})
	}
	p.next()
	return d, nil
}
