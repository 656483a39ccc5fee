package jinja

import "github.com/corpus-agent/corpus-agent/state/value"

// target is the target of an assignment.
type target interface {
	assign(f *frame, v any) error
	// check returns an error if the target cannot be assigned to, before the value is evaluated.
	check(f *frame) error
}

// slotTarget is a variable. Export is its name if it is a variable of the template itself.
type slotTarget struct {
	place  place
	export string
}

func (t *slotTarget) check(*frame) error { return nil }

func (t *slotTarget) assign(f *frame, v any) error {
	*f.at(t.place) = v
	if t.export != "" {
		f.scope.set(t.export, v, true)
	}
	return nil
}

// tupleTarget assigns the items of a value to several targets.
type tupleTarget struct{ items []target }

func (t *tupleTarget) check(*frame) error { return nil }

func (t *tupleTarget) assign(f *frame, v any) error {
	items, err := f.unpack(v, len(t.items))
	if err != nil {
		return err
	}
	for i, item := range t.items {
		if err := item.assign(f, items[i]); err != nil {
			return err
		}
	}
	return nil
}

// unpack returns the items of a value, which must be exactly n.
func (f *frame) unpack(v any, n int) ([]any, error) {
	switch v := v.(type) {
	case value.Tuple:
		if len(v) == n {
			return v, nil
		}
	case *value.List:
		if len(v.Items) == n {
			return v.Items, nil
		}
	}
	next, err := iterate(v)
	if err != nil {
		if isKind(err, "TypeError") {
			err = typeError("cannot unpack non-iterable " + value.TypeName(v) + " object")
		}
		return nil, err
	}
	var items []any
	for {
		item, ok, err := next()
		switch {
		case err != nil:
			return nil, err
		case !ok && len(items) < n:
			return nil, value.Raise("ValueError", "not enough values to unpack (expected %d, got %d)", n, len(items))
		case !ok:
			return items, nil
		case len(items) == n:
			return nil, value.Raise("ValueError", "too many values to unpack (expected %d)", n)
		}
		items = append(items, item)
	}
}

// namespaceTarget is an attribute of a namespace.
type namespaceTarget struct {
	place place
	attr  string
}

func (t *namespaceTarget) check(f *frame) error {
	if _, ok := (*f.at(t.place)).(*namespace); !ok {
		return withHint(templateError("cannot assign attribute on non-namespace object"),
			"make one before: {% set ns = namespace() %}; a dict is changed with {% do d.update(...) %}")
	}
	return nil
}

func (t *namespaceTarget) assign(f *frame, v any) error {
	(*f.at(t.place)).(*namespace).attrs.Set(t.attr, v)
	return nil
}

// assignStmt is a set statement with a value.
type assignStmt struct {
	target target
	node   expr
	at     int
	line   int
}

func (s *assignStmt) exec(f *frame) (flow, error) {
	err := s.target.check(f)
	if err == nil {
		err = f.r.step(1)
	}
	var v any
	if err == nil {
		v, err = s.node.eval(f)
	}
	if err == nil {
		err = s.target.assign(f, v)
	}
	if err != nil {
		return flowNext, f.onLine(s.line, s.at, err)
	}
	return flowNext, nil
}

// captureStmt is a set statement with a body. Filter may be nil; its node is the captured text.
type captureStmt struct {
	target target
	enter  []entry
	body   []stmt
	filter *filterExpr
	at     int
	line   int
}

func (s *captureStmt) exec(f *frame) (flow, error) {
	f.start(s.enter)
	var next flow
	text, err := f.captured(func() (err error) {
		next, err = execAll(s.body, f)
		return err
	})
	if err != nil || next != flowNext {
		return next, err
	}
	var v any = text
	if s.filter != nil {
		v, err = f.filtered(s.filter, text)
	}
	if err == nil {
		err = s.target.check(f)
	}
	if err == nil {
		err = s.target.assign(f, v)
	}
	f.end(s.enter)
	if err != nil {
		return flowNext, f.onLine(s.line, s.at, err)
	}
	return flowNext, nil
}
