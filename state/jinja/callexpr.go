package jinja

import (
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// callExpr is a call.
type callExpr struct {
	callee expr
	arguments
	at int
}

func (e *callExpr) eval(f *frame) (any, error) {
	v, err := e.evalWith(f, nil)
	if err != nil {
		return nil, f.calledAt(e.at, f.fail(e.at, err))
	}
	return v, nil
}

// evalWith makes the call. Unless caller is nil, it is passed as the keyword argument caller.
func (e *callExpr) evalWith(f *frame, caller any) (any, error) {
	if attr, ok := e.callee.(*attrExpr); ok && caller == nil {
		object, err := attr.node.eval(f)
		if err != nil {
			return nil, err
		}
		if m, ok := f.r.env.methods.of(object)[attr.attr]; ok {
			return e.callMethod(f, m, object, attr.attr)
		}
		callee, err := f.getattr(object, attr.attr)
		if err != nil {
			return nil, f.fail(attr.at, err)
		}
		return e.callWith(f, callee, nil)
	}
	callee, err := e.callee.eval(f)
	if err != nil {
		return nil, err
	}
	return e.callWith(f, callee, caller)
}

func (e *callExpr) callWith(f *frame, callee, caller any) (any, error) {
	args, kwargs, err := e.arguments.eval(f)
	if err != nil {
		return nil, err
	}
	if caller != nil {
		if kwargs == nil {
			kwargs = value.NewMap()
		}
		kwargs.Set("caller", caller)
	}
	return f.call(callee, args, kwargs, e.at)
}

func (e *callExpr) callMethod(f *frame, m *method, self any, name string) (any, error) {
	args, kwargs, err := e.arguments.eval(f)
	if err != nil {
		return nil, err
	}
	if err := f.r.step(1); err != nil {
		return nil, err
	}
	if err := f.weighMethod(self, args, kwargs); err != nil {
		return nil, err
	}
	return m.invoke(&Call{Args: args, Kwargs: kwargs, f: f, at: e.at}, self, name)
}

// filterExpr is node | filter(...). Node is nil in a filter block, which filters its output.
type filterExpr struct {
	node   expr
	filter Filter
	name   string
	arguments
	at int
}

func (e *filterExpr) eval(f *frame) (any, error) {
	v, err := e.node.eval(f)
	if err != nil {
		return nil, err
	}
	return e.apply(f, v)
}

func (e *filterExpr) apply(f *frame, v any) (any, error) {
	args, kwargs, err := e.arguments.eval(f, v)
	if err == nil {
		v, err = f.applyFilter(e.name, e.filter, args, kwargs, e.at)
	}
	if err != nil {
		return nil, f.fail(e.at, err)
	}
	return v, nil
}

func (f *frame) applyFilter(name string, filter Filter, args []any, kwargs *value.Map, at int) (any, error) {
	if err := f.r.step(1); err != nil {
		return nil, err
	}
	if err := f.weighFilter(name, args, kwargs); err != nil {
		return nil, err
	}
	v, err := filter(&Call{Args: args, Kwargs: kwargs, f: f, at: at})
	if err == nil {
		if s, ok := v.(string); ok {
			err = f.r.charge(len(s))
		}
	}
	return v, err
}

// testExpr is node is test(...).
type testExpr struct {
	node expr
	test Test
	arguments
	at int
}

func (e *testExpr) eval(f *frame) (any, error) {
	v, err := e.node.eval(f)
	if err != nil {
		return nil, err
	}
	args, kwargs, err := e.arguments.eval(f, v)
	if err == nil {
		err = f.r.step(1)
	}
	if err == nil {
		err = f.weighTexts(args)
	}
	var ok bool
	if err == nil {
		ok, err = e.test(&Call{Args: args, Kwargs: kwargs, f: f, at: e.at})
	}
	if err != nil {
		return nil, f.fail(e.at, err)
	}
	return ok, nil
}

// missingExpr is a filter or test that does not exist, in a branch that may never be taken.
type missingExpr struct {
	err       error
	node      expr // its operand; nil in a filter block
	arguments arguments
	at        int
}

// eval reports the missing name only when it is called, after it has evaluated the arguments.
func (e *missingExpr) eval(f *frame) (any, error) {
	if e.node != nil {
		if _, err := e.node.eval(f); err != nil {
			return nil, err
		}
	}
	if _, _, err := e.arguments.eval(f); err != nil {
		return nil, err
	}
	return nil, f.fail(e.at, e.err)
}

// unknownName returns the error for a filter or test that does not exist.
func unknownName(what, name string, known []string) error {
	return withHint(templateError("No "+what+" named "+value.Repr(name)+" found."), suggest(name, known))
}

func suggest(name string, known []string) string {
	if hint := diag.DidYouMean(name, known); hint != "" {
		return hint
	}
	return "known are: " + strings.Join(known, ", ")
}
