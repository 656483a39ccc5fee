package syntax

// Children calls visit for every node directly below n, in the order in which Jinja2 walks them.
func Children(n Node, visit func(Node)) {
	switch n := n.(type) {
	case *Output:
		each(n.Nodes, visit)
	case *Extends:
		visit(n.Template)
	case *For:
		visit(n.Target)
		visit(n.Iter)
		each(n.Body, visit)
		each(n.Else, visit)
		one(n.Test, visit)
	case *If:
		visit(n.Test)
		each(n.Body, visit)
		for _, elif := range n.Elif {
			visit(elif)
		}
		each(n.Else, visit)
	case *Macro:
		n.Signature.children(visit)
		each(n.Body, visit)
	case *CallBlock:
		visit(n.Call)
		n.Signature.children(visit)
		each(n.Body, visit)
	case *FilterBlock:
		each(n.Body, visit)
		visit(n.Filter)
	case *With:
		each(n.Targets, visit)
		each(n.Values, visit)
		each(n.Body, visit)
	case *Block:
		each(n.Body, visit)
	case *Include:
		visit(n.Template)
	case *Import:
		visit(n.Template)
	case *FromImport:
		visit(n.Template)
	case *ExprStmt:
		visit(n.Node)
	case *Assign:
		visit(n.Target)
		visit(n.Node)
	case *AssignBlock:
		visit(n.Target)
		if n.Filter != nil {
			visit(n.Filter)
		}
		each(n.Body, visit)
	case *Scope:
		visit(n.Options)
		each(n.Body, visit)
	default:
		exprChildren(n, visit)
	}
}

func each(nodes []Node, visit func(Node)) {
	for _, n := range nodes {
		visit(n)
	}
}

func one(n Node, visit func(Node)) {
	if n != nil {
		visit(n)
	}
}

func (s *Signature) children(visit func(Node)) {
	for _, a := range s.Args {
		visit(a)
	}
	each(s.Defaults, visit)
}

func exprChildren(n Node, visit func(Node)) {
	switch n := n.(type) {
	case *Tuple:
		each(n.Items, visit)
	case *List:
		each(n.Items, visit)
	case *Dict:
		for _, p := range n.Pairs {
			visit(p.Key)
			visit(p.Value)
		}
	case *Binary:
		visit(n.Left)
		visit(n.Right)
	case *Unary:
		visit(n.Node)
	case *Concat:
		each(n.Nodes, visit)
	case *Compare:
		visit(n.Expr)
		for _, op := range n.Ops {
			visit(op.Expr)
		}
	case *CondExpr:
		visit(n.Test)
		visit(n.Then)
		one(n.Else, visit)
	case *Filter:
		one(n.Node, visit)
		n.Arguments.children(visit)
	case *Test:
		visit(n.Node)
		n.Arguments.children(visit)
	case *Call:
		visit(n.Node)
		n.Arguments.children(visit)
	case *Getattr:
		visit(n.Node)
	case *Getitem:
		visit(n.Node)
		visit(n.Arg)
	case *Slice:
		one(n.Start, visit)
		one(n.Stop, visit)
		one(n.Step, visit)
	}
}

func (a *Arguments) children(visit func(Node)) {
	each(a.Args, visit)
	for _, k := range a.Kwargs {
		visit(k.Value)
	}
	one(a.DynArgs, visit)
	one(a.DynKwargs, visit)
}
