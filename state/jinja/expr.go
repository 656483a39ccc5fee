package jinja

import (
	"strings"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// constExpr is a literal.
type constExpr struct{ value any }

func (e *constExpr) eval(*frame) (any, error) { return e.value, nil }

// nameExpr is a variable.
type nameExpr struct {
	place place
	name  string
}

func (e *nameExpr) eval(f *frame) (any, error) {
	v := *f.at(e.place)
	if v == any(missing) {
		return f.undefinedName(e.name), nil
	}
	return v, nil
}

// listExpr is a list or tuple literal.
type listExpr struct {
	items []expr
	tuple bool
}

func (e *listExpr) eval(f *frame) (any, error) {
	items := make([]any, len(e.items))
	for i, item := range e.items {
		v, err := item.eval(f)
		if err != nil {
			return nil, err
		}
		items[i] = v
	}
	if e.tuple {
		return value.Tuple(items), nil
	}
	return &value.List{Items: items}, nil
}

// dictExpr is a dict literal.
type dictExpr struct {
	keys, values []expr
	at           int
}

func (e *dictExpr) eval(f *frame) (any, error) {
	m := value.MakeMap(len(e.keys)).Plain()
	for i := range e.keys {
		k, err := e.keys[i].eval(f)
		if err != nil {
			return nil, err
		}
		v, err := e.values[i].eval(f)
		if err != nil {
			return nil, err
		}
		if err := strict(k); err != nil {
			return nil, f.fail(e.at, err)
		}
		if err := m.SetKey(k, v); err != nil {
			return nil, f.fail(e.at, err)
		}
	}
	return m, nil
}

// logicExpr is and, or.
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

// notExpr is not.
type notExpr struct {
	node expr
	at   int
}

func (e *notExpr) eval(f *frame) (any, error) {
	t, err := evalTruth(f, e.node, e.at)
	return !t, err
}

// evalTruth is the truth of an expression.
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
	op          func(a, b any) (any, error)
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
	v, err := f.arithmetic(e.op, a, b)
	if err != nil {
		return nil, f.fail(e.at, err)
	}
	return v, nil
}

func (f *frame) arithmetic(op func(a, b any) (any, error), a, b any) (any, error) {
	if err := refused(a); err != nil {
		return nil, err
	}
	if _, format := a.(string); !format || !isUndefined(b) { // a format decides itself what it does with it
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
			err = refused(b) // no format took it, so it was asked itself
		}
		return nil, err
	}
	return v, f.r.charge(sizeOf(v))
}

// sizeOf is how much memory was made for a value.
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

// unaryExpr is a sign.
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

// concatExpr is ~.
type concatExpr struct {
	nodes []expr
	at    int
}

func (e *concatExpr) eval(f *frame) (any, error) {
	values := make([]any, len(e.nodes))
	for i, n := range e.nodes { // all of them before any is made text of
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

// condExpr is x if test else y.
type condExpr struct {
	test, then, otherwise expr // otherwise may be nil
	at                    int
	line                  int
}

func (e *condExpr) eval(f *frame) (any, error) {
	t, err := evalTruth(f, e.test, e.at)
	if err != nil {
		return nil, err
	}
	switch {
	case t:
		return e.then.eval(f)
	case e.otherwise != nil:
		return e.otherwise.eval(f)
	}
	// Jinja2 has a lenient undefined here, even where all others are strict.
	return &Undefined{lenient: true, object: missing, message: "the inline if-expression on line " + itoa(e.line) +
		" evaluated to false and no else section was defined."}, nil
}

// attrExpr is node.attr.
type attrExpr struct {
	node expr
	attr string
	at   int
}

func (e *attrExpr) eval(f *frame) (any, error) {
	object, err := e.node.eval(f)
	if err != nil {
		return nil, err
	}
	v, err := f.getattr(object, e.attr)
	if err != nil {
		return nil, f.fail(e.at, err)
	}
	return lackOf(v, e.node), nil
}

// itemExpr is node[arg].
type itemExpr struct {
	node, arg expr
	at        int
}

func (e *itemExpr) eval(f *frame) (any, error) {
	object, err := e.node.eval(f)
	if err != nil {
		return nil, err
	}
	arg, err := e.arg.eval(f)
	if err != nil {
		return nil, err
	}
	v, err := f.getitem(object, arg)
	if err != nil {
		return nil, f.fail(e.at, err)
	}
	return lackOf(v, e.node), nil
}

// sliceExpr is node[start:stop:step].
type sliceExpr struct {
	node              expr
	start, stop, step expr // may be nil
	at                int
}

func (e *sliceExpr) eval(f *frame) (any, error) {
	object, err := e.node.eval(f)
	if err != nil {
		return nil, err
	}
	var bounds [3]any
	for i, part := range []expr{e.start, e.stop, e.step} {
		if part == nil {
			continue
		}
		if bounds[i], err = part.eval(f); err != nil {
			return nil, err
		}
	}
	if err = refused(object); err == nil {
		var v any
		if v, err = sliceOf(object, bounds[0], bounds[1], bounds[2]); err == nil {
			err = f.r.charge(sizeOf(v))
		}
		if err == nil {
			return v, nil
		}
	}
	return nil, f.fail(e.at, err)
}

func sliceOf(object, start, stop, step any) (any, error) {
	switch o := plainTuple(object).(type) {
	case *rangeObject:
		return o.slice(start, stop, step)
	case value.Object:
		return nil, typeError("'" + o.PyType() + "' object is not subscriptable")
	default:
		return value.Slice(o, start, stop, step)
	}
}
