package jinja

import "github.com/corpus-agent/corpus-agent/state/value"

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
	// Jinja2 uses a lenient undefined here, even if all others are strict.
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
	v, err := f.slice(object, bounds)
	if err != nil {
		return nil, f.fail(e.at, err)
	}
	return v, nil
}

// slice returns the part of an object between bounds: start, stop and step.
func (f *frame) slice(object any, bounds [3]any) (any, error) {
	if err := refused(object); err != nil {
		return nil, err
	}
	v, err := sliceOf(object, bounds[0], bounds[1], bounds[2])
	if err != nil {
		return nil, err
	}
	return v, f.r.charge(sizeOf(v))
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
