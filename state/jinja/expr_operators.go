package jinja

import (
	"cmp"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// logicExpr is the operator and, or the operator or.
type logicExpr struct {
	left, right expr
	or          bool
	at          int
}

func (e *logicExpr) eval(f *frame) (any, error) {
	v, err := e.left.eval(f)
	if err != nil {
		return nil, err
	}
	t, err := truth(v)
	if err != nil {
		return nil, f.fail(e.at, err)
	}
	if t == e.or {
		return v, nil
	}
	return e.right.eval(f)
}

// notExpr is the operator not.
type notExpr struct {
	node expr
	at   int
}

func (e *notExpr) eval(f *frame) (any, error) {
	t, err := evalTruth(f, e.node, e.at)
	return !t, err
}

// evalTruth returns the truth of an expression.
func evalTruth(f *frame, e expr, at int) (bool, error) {
	v, err := e.eval(f)
	if err != nil {
		return false, err
	}
	t, err := truth(v)
	if err != nil {
		return false, f.fail(at, err)
	}
	return t, nil
}

// binaryExpr is arithmetic on two values.
type binaryExpr struct {
	sign        string
	left, right expr
	at          int
}

func (e *binaryExpr) eval(f *frame) (any, error) {
	a, err := e.left.eval(f)
	if err != nil {
		return nil, err
	}
	b, err := e.right.eval(f)
	if err != nil {
		return nil, err
	}
	if o, ok := operandOf(a, b); ok && !e.formats(a) {
		return f.operated(o, e.sign, a, b, e.at)
	}
	v, err := f.arithmetic(arithmetic[e.sign], a, b)
	if err != nil {
		return nil, f.fail(e.at, err)
	}
	return v, nil
}

// formats reports whether the operator is that of a text such as "%s".
func (e *binaryExpr) formats(left any) bool {
	_, text := left.(string)
	return text && e.sign == "%"
}

// operated returns what an object answers to an operator.
func (f *frame) operated(o Operand, sign string, a, b any, at int) (any, error) {
	err := cmp.Or(refused(a), refused(b))
	if err != nil {
		return nil, f.fail(at, err)
	}
	v, err := o.Operate(f.r.ctx, sign, plainTuple(a), plainTuple(b))
	if err != nil {
		return nil, f.fail(at, err)
	}
	return v, f.r.charge(sizeOf(v))
}

func (f *frame) arithmetic(op func(a, b any) (any, error), a, b any) (any, error) {
	if err := refused(a); err != nil {
		return nil, err
	}
	if _, format := a.(string); !format || !isUndefined(b) { // a format handles undefined values itself
		if err := refused(b); err != nil {
			return nil, err
		}
	}
	if err := f.weighOperands(a, b); err != nil {
		return nil, err
	}
	v, err := op(plainTuple(a), plainTuple(b))
	if err != nil {
		if kindOf(err) == "TypeError" && isUndefined(b) && !strings.Contains(err.Error(), "format") {
			err = refused(b) // it was not an argument of a format
		}
		return nil, err
	}
	return v, f.r.charge(sizeOf(v))
}

// sizeOf returns the memory of a new value in bytes.
func sizeOf(v any) int {
	const item = 16
	switch v := v.(type) {
	case string:
		return len(v)
	case *value.List:
		return item * len(v.Items)
	case value.Tuple:
		return item * len(v)
	}
	return 0
}

// unaryExpr is the sign + or - before a value.
type unaryExpr struct {
	op   func(any) (any, error)
	node expr
	at   int
}

func (e *unaryExpr) eval(f *frame) (any, error) {
	v, err := e.node.eval(f)
	if err != nil {
		return nil, err
	}
	if err = refused(v); err == nil {
		v, err = e.op(v)
	}
	if err != nil {
		return nil, f.fail(e.at, err)
	}
	return v, nil
}

// concatExpr is the operator ~, which joins texts.
type concatExpr struct {
	nodes []expr
	at    int
}

func (e *concatExpr) eval(f *frame) (any, error) {
	values := make([]any, len(e.nodes))
	for i, n := range e.nodes { // all of them, before any is converted to text
		var err error
		if values[i], err = n.eval(f); err != nil {
			return nil, err
		}
	}
	var b strings.Builder
	if err := f.weigh(values...); err != nil {
		return nil, f.fail(e.at, err)
	}
	for _, v := range values {
		s, err := value.ToStr(v)
		if err == nil {
			err = f.r.charge(len(s))
		}
		if err != nil {
			return nil, f.fail(e.at, err)
		}
		b.WriteString(s)
	}
	return b.String(), nil
}

// compareExpr is a chain of comparisons.
type compareExpr struct {
	first expr
	ops   []comparison
	rest  []expr
	at    int
}

func (e *compareExpr) eval(f *frame) (any, error) {
	left, err := e.first.eval(f)
	if err != nil {
		return nil, err
	}
	for i, op := range e.ops {
		right, err := e.rest[i].eval(f)
		if err != nil {
			return nil, err
		}
		ok, err := op(f, left, right)
		if err != nil {
			return nil, f.fail(e.at, err)
		}
		if !ok {
			return false, nil
		}
		left = right
	}
	return true, nil
}
