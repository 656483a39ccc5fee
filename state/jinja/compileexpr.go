package jinja

import (
	"maps"
	"slices"

	"github.com/corpus-agent/corpus-agent/state/jinja/syntax"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func (c *compiler) exprs(nodes []syntax.Expr, fr *cframe) []expr {
	out := make([]expr, len(nodes))
	for i, n := range nodes {
		out[i] = c.expr(n, fr)
	}
	return out
}

// optional compiles an expression that may be nil.
func (c *compiler) optional(n syntax.Expr, fr *cframe) expr {
	if n == nil {
		return nil
	}
	return c.expr(n, fr)
}

func (c *compiler) expr(n syntax.Expr, fr *cframe) expr {
	switch n := n.(type) {
	case *syntax.Const:
		return &constExpr{n.Value}
	case *syntax.Name:
		return &nameExpr{fr.place(n.Name), n.Name}
	case *syntax.Tuple:
		return &listExpr{c.exprs(n.Items, fr), true}
	case *syntax.List:
		return &listExpr{c.exprs(n.Items, fr), false}
	case *syntax.Dict:
		return c.dict(n, fr)
	case *syntax.Binary:
		return c.binary(n, fr)
	case *syntax.Unary:
		return c.unary(n, fr)
	case *syntax.Concat:
		return &concatExpr{c.exprs(n.Nodes, fr), n.Offset()}
	case *syntax.Compare:
		return c.compare(n, fr)
	case *syntax.CondExpr:
		soft := fr.softly()
		return &condExpr{c.expr(n.Test, soft), c.expr(n.Then, soft), c.optional(n.Else, soft), n.Test.Offset(), n.Line()}
	case *syntax.Filter:
		return c.filter(n, fr)
	case *syntax.Test:
		return c.test(n, fr)
	case *syntax.Call:
		return c.call(n, fr)
	case *syntax.Getattr:
		return &attrExpr{c.expr(n.Node, fr), n.Attr, n.Offset()}
	case *syntax.Getitem:
		return c.item(n, fr)
	case *syntax.Slice:
		c.fail("SyntaxError", n, "invalid syntax: a slice cannot stand here")
	}
	return &constExpr{}
}

func (c *compiler) dict(n *syntax.Dict, fr *cframe) expr {
	d := &dictExpr{at: n.Offset()}
	for _, p := range n.Pairs {
		d.keys = append(d.keys, c.expr(p.Key, fr))
		d.values = append(d.values, c.expr(p.Value, fr))
	}
	return d
}

var arithmetic = map[string]func(a, b any) (any, error){
	"+": value.Add, "-": value.Sub, "*": value.Mul, "/": value.Div, "//": value.FloorDiv, "%": value.Mod, "**": value.Pow,
}

func (c *compiler) binary(n *syntax.Binary, fr *cframe) expr {
	left, right := c.expr(n.Left, fr), c.expr(n.Right, fr)
	if n.Op == "and" || n.Op == "or" {
		return &logicExpr{left, right, n.Op == "or", n.Left.Offset()}
	}
	return &binaryExpr{n.Op, left, right, n.Offset()}
}

func (c *compiler) unary(n *syntax.Unary, fr *cframe) expr {
	node := c.expr(n.Node, fr)
	switch n.Op {
	case "not":
		return &notExpr{node, n.Node.Offset()}
	case "-":
		if k, ok := node.(*constExpr); ok {
			if v, err := value.Neg(k.value); err == nil {
				return &constExpr{v}
			}
		}
		return &unaryExpr{value.Neg, node, n.Offset()}
	}
	return &unaryExpr{value.Pos, node, n.Offset()}
}

func (c *compiler) compare(n *syntax.Compare, fr *cframe) expr {
	e := &compareExpr{first: c.expr(n.Expr, fr), at: n.Expr.Offset()}
	for _, op := range n.Ops {
		e.ops = append(e.ops, comparisons[op.Op])
		e.rest = append(e.rest, c.expr(op.Expr, fr))
	}
	return e
}

func (c *compiler) item(n *syntax.Getitem, fr *cframe) expr {
	node := c.expr(n.Node, fr)
	if s, ok := n.Arg.(*syntax.Slice); ok {
		return &sliceExpr{node, c.optional(s.Start, fr), c.optional(s.Stop, fr), c.optional(s.Step, fr), n.Offset()}
	}
	return &itemExpr{node, c.expr(n.Arg, fr), n.Arg.Offset()}
}

func (c *compiler) arguments(a *syntax.Arguments, n syntax.Node, fr *cframe) arguments {
	out := arguments{args: c.exprs(a.Args, fr), dynArgs: c.optional(a.DynArgs, fr), dynKwargs: c.optional(a.DynKwargs, fr)}
	for _, k := range a.Kwargs {
		if slices.Contains(out.names, k.Name) {
			c.fail("SyntaxError", n, "keyword argument repeated: "+k.Name)
		}
		out.names = append(out.names, k.Name)
		out.kwargs = append(out.kwargs, c.expr(k.Value, fr))
	}
	return out
}

func (c *compiler) call(n *syntax.Call, fr *cframe) *callExpr {
	callee := c.expr(n.Node, fr)
	return &callExpr{callee, c.arguments(&n.Arguments, n, fr), n.Node.Offset()}
}

// filterNamed checks that a filter exists. Inside a condition, a missing one is an error only if it is used.
func (c *compiler) filterNamed(n *syntax.Filter, fr *cframe) error {
	if _, ok := c.env.filters[n.Name]; ok {
		return nil
	}
	known := slices.Sorted(maps.Keys(c.env.filters))
	if !fr.soft {
		c.failHint(assertion, n, "No filter named "+value.Repr(n.Name)+".", suggest(n.Name, known))
	}
	return unknownName("filter", n.Name, known)
}

func (c *compiler) filter(n *syntax.Filter, fr *cframe) expr {
	e := &filterExpr{filter: c.env.filters[n.Name], name: n.Name, at: n.Offset()}
	if err := c.filterNamed(n, fr); err != nil {
		return &missingExpr{err, c.optional(n.Node, fr), c.arguments(&n.Arguments, n, fr), n.Offset()}
	}
	e.node = c.optional(n.Node, fr)
	e.arguments = c.arguments(&n.Arguments, n, fr)
	return e
}

func (c *compiler) test(n *syntax.Test, fr *cframe) expr {
	t, ok := c.env.tests[n.Name]
	if !ok {
		known := slices.Sorted(maps.Keys(c.env.tests))
		if !fr.soft {
			c.failHint(assertion, n, "No test named "+value.Repr(n.Name)+".", suggest(n.Name, known))
		}
		return &missingExpr{unknownName("test", n.Name, known), c.expr(n.Node, fr), c.arguments(&n.Arguments, n, fr),
			n.Offset()}
	}
	node := c.expr(n.Node, fr)
	return &testExpr{node, t, c.arguments(&n.Arguments, n, fr), n.Offset()}
}
