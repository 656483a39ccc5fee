package jinja

import (
	"math/bits"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// The cost of an operation depends on the size of its operands: a comparison of two texts of 60 MB is one step for a
// template, but takes milliseconds. So the code that starts an operation (an operator, a comparison, a filter, a test,
// a method, a call, printing) first weighs the operands, that is, counts steps for their size. The operations
// themselves count no steps, so they may not be reached in another way.
const (
	bytesPerStep = 256 // of text
	itemsPerStep = 16  // of lists and mappings, at any depth
	deepestValue = 1000
)

// weigh counts steps for the content of values, at any depth.
func (f *frame) weigh(values ...any) error {
	s := f.r.scale()
	for _, v := range values {
		s.add(v, 0)
	}
	return f.r.step(s.steps())
}

// weighTexts counts steps for the texts among values, and none for the content of lists and mappings. It is for
// operations that read only a few items of these, or count the items that they read.
func (f *frame) weighTexts(values []any) error {
	n := 0
	for _, v := range values {
		if s, ok := v.(string); ok {
			n += len(s)
		}
	}
	return f.r.step(n / bytesPerStep)
}

// weighBoth counts steps for a comparison: texts are compared up to the length of the shorter one.
func (f *frame) weighBoth(a, b any) error {
	x, isText := a.(string)
	y, both := b.(string)
	switch {
	case isText && both:
		return f.r.step(min(len(x), len(y)) / bytesPerStep)
	case isText, both:
		return nil // no text equals anything else
	}
	switch a.(type) {
	case *value.Map, *value.List, value.Tuple, value.Object:
		return f.weigh(a, b)
	}
	return nil
}

// scale adds up sizes until they exceed the remaining steps of a template.
type scale struct {
	bytes, items int
	most         int // steps
}

// scale returns a scale whose limit is well above the remaining steps, since step does not check the limit at each
// step.
func (r *run) scale() scale { return scale{most: max(r.limits.Steps-r.steps, 0) + 2*often} }

func (s *scale) steps() int { return s.bytes/bytesPerStep + s.items/itemsPerStep }

func (s *scale) full() bool { return s.steps() > s.most }

func (s *scale) add(v any, depth int) {
	if depth > deepestValue || s.full() {
		return
	}
	switch v := v.(type) {
	case string:
		s.bytes += len(v)
	case *value.List:
		s.all(v.Items, depth)
	case value.Tuple:
		s.all(v, depth)
	case *namedTuple:
		s.all(v.items, depth)
	case *value.Map:
		for key, item := range v.All() {
			s.items++
			s.add(key, depth+1)
			s.add(item, depth+1)
			if s.full() {
				return
			}
		}
	}
}

func (s *scale) all(items []any, depth int) {
	s.items += len(items)
	for _, item := range items {
		s.add(item, depth+1)
		if s.full() {
			return
		}
	}
}

// looksAtItems reports whether a filter is weighed with weighTexts; others are weighed with the whole content of their
// arguments.
func looksAtItems(filter string) bool {
	switch filter {
	case "attr", "batch", "count", "d", "default", "dictsort", "first", "groupby", "items", "last", "length", "list",
		"map", "max", "min",
		"random", "reject", "rejectattr", "reverse", "select", "selectattr", "slice", "sum":
		return true
	}
	return false
}

func (f *frame) weighFilter(name string, args []any, kwargs *value.Map) error {
	if looksAtItems(name) {
		return f.weighTexts(args)
	}
	return f.weighCall(args, kwargs)
}

// weighCall weighs all arguments of a call.
func (f *frame) weighCall(args []any, kwargs *value.Map) error {
	if kwargs.Len() == 0 {
		return f.weigh(args...)
	}
	return f.weigh(append(args[:len(args):len(args)], kwargs)...)
}

// weighMethod weighs a call of a method. Methods of lists and mappings count the items that they read; those of texts
// read all of the text and of the arguments.
func (f *frame) weighMethod(self any, args []any, kwargs *value.Map) error {
	if s, ok := self.(string); ok {
		if err := f.r.step(len(s) / bytesPerStep); err != nil {
			return err
		}
		return f.weighCall(args, kwargs)
	}
	return f.weighTexts(args)
}

// weighOperands weighs the operands of an operator. A text may be a format for the whole content of the other operand.
func (f *frame) weighOperands(a, b any) error {
	if _, ok := a.(string); ok {
		return f.weigh(a, b)
	}
	return f.weighTexts([]any{a, b})
}

// weighSort counts steps for the comparisons of a sort: the size of all keys, times the logarithm of their number.
func (c *Call) weighSort(pairs []any) error {
	s := c.f.r.scale()
	for _, p := range pairs {
		s.add(p.(*keyed).key, 0)
	}
	return c.f.r.step(s.steps() * bits.Len(uint(len(pairs))))
}
