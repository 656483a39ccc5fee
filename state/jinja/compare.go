package jinja

import (
	"strings"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// comparison implements a comparison operator, such as ==.
type comparison func(f *frame, a, b any) (bool, error)

var comparisons = map[string]comparison{
	"==": (*frame).equal,
	"!=": func(f *frame, a, b any) (bool, error) { return not(f.equal(a, b)) },
	"<":  func(f *frame, a, b any) (bool, error) { return f.ordered(a, b, "<", func(c int) bool { return c < 0 }) },
	"<=": func(f *frame, a, b any) (bool, error) {
		return f.ordered(a, b, "<=", func(c int) bool { return c <= 0 })
	},
	">": func(f *frame, a, b any) (bool, error) { return f.ordered(a, b, ">", func(c int) bool { return c > 0 }) },
	">=": func(f *frame, a, b any) (bool, error) {
		return f.ordered(a, b, ">=", func(c int) bool { return c >= 0 })
	},
	"in":     func(f *frame, a, b any) (bool, error) { return f.contains(b, a) },
	"not in": func(f *frame, a, b any) (bool, error) { return not(f.contains(b, a)) },
}

func not(b bool, err error) (bool, error) { return !b, err }

// equal implements ==. It returns an error for a strict undefined value.
func (f *frame) equal(a, b any) (bool, error) {
	if err := strict(a); err != nil {
		return false, err
	}
	if err := strict(b); err != nil {
		return false, err
	}
	if isUndefined(a) || isUndefined(b) {
		return isUndefined(a) && isUndefined(b), nil
	}
	a, b = plainTuple(a), plainTuple(b)
	if x, ok := a.(equaler); ok {
		return x.equal(b), nil
	}
	if o, ok := operandOf(a, b); ok && a != b {
		return f.decided(o, "==", a, b)
	}
	if err := f.weighBoth(a, b); err != nil {
		return false, err
	}
	return value.Equal(a, b), nil
}

// equaler is an object that can be equal to another one.
type equaler interface{ equal(other any) bool }

func (f *frame) ordered(a, b any, sign string, is func(int) bool) (bool, error) {
	if err := refused(a); err != nil {
		return false, err
	}
	if err := refused(b); err != nil {
		return false, err
	}
	a, b = plainTuple(a), plainTuple(b)
	if o, ok := operandOf(a, b); ok {
		return f.decided(o, sign, a, b)
	}
	if isNaN(a) && value.IsNumber(b) || isNaN(b) && value.IsNumber(a) {
		return false, nil
	}
	if err := f.weighBoth(a, b); err != nil {
		return false, err
	}
	c, err := value.Compare(a, b)
	if err != nil {
		return false, typeError(strings.Replace(err.Error(), "'<'", "'"+sign+"'", 1))
	}
	return is(c), nil
}

// decided returns the truth of what an object answers to a comparison.
func (f *frame) decided(o Operand, sign string, a, b any) (bool, error) {
	v, err := o.Operate(f.r.ctx, sign, a, b)
	if err != nil {
		return false, err
	}
	return truth(v)
}

func isNaN(v any) bool {
	f, ok := v.(float64)
	return ok && f != f
}

// contains implements item in container.
func (f *frame) contains(container, item any) (bool, error) {
	if err := strict(container); err != nil {
		return false, err
	}
	switch c := plainTuple(container).(type) {
	case string:
		s, ok := item.(string)
		if !ok {
			return false, typeError("'in <string>' requires string as left operand, not " + value.TypeName(item))
		}
		if err := f.r.step((len(c) + len(s)) / bytesPerStep); err != nil {
			return false, err
		}
		return strings.Contains(c, s), nil
	case *value.Map:
		if err := strict(item); err != nil {
			return false, err
		}
		if err := f.weigh(item); err != nil {
			return false, err
		}
		found, err := c.HasKey(plainTuple(item))
		return found, err
	case *value.List:
		return f.among(c.Items, item)
	case value.Tuple:
		return f.among(c, item)
	case Container:
		if err := f.weigh(item); err != nil {
			return false, err
		}
		return c.Contains(item)
	case Iterable:
		return f.amongIterated(c, item)
	case Operand:
		return f.decided(c, "in", c, item)
	}
	err := typeError("argument of type '" + value.TypeName(container) + "' is not iterable")
	if hint := uncalled(container); hint != "" {
		err = withHint(err, hint)
	}
	return false, err
}

func (f *frame) among(items []any, item any) (bool, error) {
	if err := f.r.step(len(items) / 16); err != nil {
		return false, err
	}
	for _, other := range items {
		if found, err := f.same(other, item); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// same compares as the operator in does: it reports whether two values are the same object, or equal.
func (f *frame) same(a, b any) (bool, error) {
	if u, ok := a.(*Undefined); ok && a == b {
		return u == b, nil
	}
	return f.equal(a, b)
}

func (f *frame) amongIterated(c Iterable, item any) (bool, error) {
	next := c.Iterate()
	for {
		v, ok, err := next()
		if !ok || err != nil {
			return false, err
		}
		if found, err := f.same(v, item); found || err != nil {
			return found, err
		}
		if err := f.r.step(1); err != nil {
			return false, err
		}
	}
}
