package syntax

// targetOptions says which targets an assignment may have.
type targetOptions struct {
	tuple     bool
	namespace bool // name.attribute too
}

// target reads the target of an assignment.
func (p *parser) target(o targetOptions) (Expr, error) {
	if o.namespace && p.look().kind == tokDot {
		name, err := p.expect(tokName)
		if err != nil {
			return nil, err
		}
		p.next()
		attr, err := p.expect(tokName)
		return &NSRef{position{name.line, name.at}, name.text, attr.text}, err
	}
	e, err := p.tuple(tupleOptions{simple: true})
	if err != nil {
		return nil, err
	}
	if err := canAssign(e); err != nil {
		return nil, err
	}
	setAccess(e, Store)
	return e, nil
}

// targetName reads one name as a target.
func (p *parser) targetName() (*Name, error) {
	t, err := p.expect(tokName)
	if err != nil {
		return nil, err
	}
	n := &Name{position{t.line, t.at}, t.text, Store}
	if isConstant(t.text) {
		return nil, fail(t.line, t.at, "can't assign to 'name'")
	}
	return n, nil
}

func isConstant(name string) bool {
	switch name {
	case "true", "false", "none", "True", "False", "None":
		return true
	}
	return false
}

func canAssign(e Expr) error {
	switch e := e.(type) {
	case *Name:
		return nil
	case *Tuple:
		for _, item := range e.Items {
			if canAssign(item) != nil {
				return fail(e.line, e.at, "can't assign to 'tuple'")
			}
		}
		return nil
	case *List:
		return fail(e.line, e.at, "can't assign to 'list'")
	case *Dict:
		return fail(e.line, e.at, "can't assign to 'dict'")
	}
	return fail(e.Line(), e.Offset(), "can't assign to 'const'")
}

func setAccess(e Expr, a Access) {
	switch e := e.(type) {
	case *Name:
		e.Access = a
	case *Tuple:
		for _, item := range e.Items {
			setAccess(item, a)
		}
	}
}

// tupleOptions says how a tuple without parentheses is read.
type tupleOptions struct {
	simple      bool   // only names and literals
	conditional bool   // x if y is allowed
	end         string // a name that ends it
	parentheses bool   // it is in parentheses, so it may be empty
}

// tuple reads one expression, or several with commas between.
func (p *parser) tuple(o tupleOptions) (Expr, error) {
	at := p.here()
	var items []Expr
	isTuple := false
	for {
		if len(items) > 0 {
			if _, err := p.expect(tokComma); err != nil {
				return nil, err
			}
		}
		if p.tupleEnd(o.end) {
			break
		}
		item, err := p.tupleItem(o)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
		if p.current().kind != tokComma {
			break
		}
		isTuple = true
		at.line = p.current().line
	}
	if !isTuple {
		if len(items) > 0 {
			return items[0], nil
		}
		if !o.parentheses {
			return nil, p.fail("Expected an expression, got '%s'", p.current().describe())
		}
	}
	return &Tuple{at, items}, nil
}

func (p *parser) tupleItem(o tupleOptions) (Expr, error) {
	switch {
	case o.simple:
		return p.primary()
	case o.conditional:
		return p.expression()
	}
	return p.or()
}

func (p *parser) tupleEnd(name string) bool {
	switch p.current().kind {
	case tokVariableEnd, tokBlockEnd, tokRparen:
		return true
	}
	return name != "" && p.current().isName(name)
}
