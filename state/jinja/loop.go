package jinja

import (
	"context"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// forStmt is a loop.
type forStmt struct {
	iter      expr
	target    target
	test      *loopTest // may be nil
	enter     []entry
	body      []stmt
	elseEnter []entry
	otherwise []stmt
	hasElse   bool
	loop      int       // the slot of the variable loop, or -1 if the body does not use it
	recursive *function // the body of a recursive loop, which runs in frames of its own
	at        int
	line      int
}

// loopTest is the condition of a loop, which runs in a frame of its own.
type loopTest struct {
	fn     *function
	target target
	test   expr
	at     int
	line   int
}

func (s *forStmt) exec(f *frame) (flow, error) {
	items, err := s.iter.eval(f)
	if err != nil {
		return flowNext, f.onLine(s.line, s.at, err)
	}
	if s.recursive == nil {
		return s.rounds(f, items, nil)
	}
	text, err := s.recurse(f, items, 0)
	if err == nil {
		err = f.print(text, s.at)
	}
	if err != nil {
		return flowNext, f.onLine(s.line, s.at, err)
	}
	return flowNext, nil
}

// recurse runs a recursive loop in a frame of its own, and returns its output.
func (s *forStmt) recurse(f *frame, items any, depth int) (string, error) {
	if err := f.r.enter(); err != nil {
		return "", err
	}
	defer f.r.leave()
	inner := newFrame(s.recursive, f.r, f.t, f.scope, f, f.out)
	return inner.captured(func() error {
		_, err := s.rounds(inner, items, &loopContext{depth0: depth, again: func(items any, depth int) (string, error) {
			return s.recurse(f, items, depth)
		}})
		return err
	})
}

// rounds runs the body for each item. Loop is nil unless the loop is recursive.
func (s *forStmt) rounds(f *frame, items any, loop *loopContext) (flow, error) {
	next, sized, err := s.iterator(f, items)
	if err != nil {
		return flowNext, f.onLine(s.line, s.at, err)
	}
	if s.loop >= 0 {
		if loop == nil {
			loop = &loopContext{}
		}
		loop.begin(f, next, sized)
		next = loop.next
	}
	empty := true
	for {
		item, ok, err := next()
		if err == nil && ok {
			err = s.bind(f, item, loop)
		}
		if err != nil {
			return flowNext, f.onLine(s.line, s.at, err)
		}
		if !ok {
			break
		}
		end, err := execAll(s.body, f)
		if err != nil {
			return flowNext, err
		}
		if end == flowBreak {
			break
		}
		if end == flowNext { // Jinja2 does not count an interrupted round
			empty = false
		}
	}
	f.end(s.enter)
	if s.hasElse && empty {
		return s.runElse(f)
	}
	return flowNext, nil
}

// bind sets the variables of a round.
func (s *forStmt) bind(f *frame, item any, loop *loopContext) error {
	if err := f.r.step(1); err != nil {
		return err
	}
	if err := s.target.assign(f, item); err != nil {
		return err
	}
	if s.loop >= 0 {
		f.slots[s.loop] = loop
	}
	f.start(s.enter)
	return nil
}

func (s *forStmt) runElse(f *frame) (flow, error) {
	f.start(s.elseEnter)
	next, err := execAll(s.otherwise, f)
	f.end(s.elseEnter)
	return next, err
}

// iterator returns a function that yields the items for which the test is true. sized is the value with the length of
// the loop.
func (s *forStmt) iterator(f *frame, items any) (next func() (any, bool, error), sized any, err error) {
	next, err = iterate(items)
	if err != nil || s.test == nil {
		return next, items, err
	}
	return s.test.filter(f, next), nil, nil
}

// filter returns a generator, whose frame is created when the first item is read.
func (t *loopTest) filter(f *frame, next func() (any, bool, error)) func() (any, bool, error) {
	var inner *frame
	return func() (any, bool, error) {
		if inner == nil {
			inner = newFrame(t.fn, f.r, f.t, f.scope, f, f.out)
			inner.start(t.fn.enter)
		}
		for {
			item, ok, err := next()
			if err != nil || !ok {
				return nil, false, err
			}
			if err := t.target.assign(inner, item); err != nil {
				return nil, false, inner.onLine(t.line, t.at, err)
			}
			pass, err := evalTruth(inner, t.test, t.at)
			if err != nil {
				return nil, false, inner.onLine(t.line, t.at, err)
			}
			if pass {
				return item, true, nil
			}
			if err := f.r.step(1); err != nil {
				return nil, false, err
			}
		}
	}
}

// loopContext is the variable loop.
type loopContext struct {
	f       *frame
	items   func() (any, bool, error)
	sized   any // nil if the items have to be counted
	length  int // -1 until it is known
	index0  int
	before  any
	current any
	after   any // the next item; missing unless peek has read it
	changed any // the arguments of the last call of changed
	depth0  int
	again   func(items any, depth int) (string, error) // nil unless the loop is recursive
}

func (l *loopContext) begin(f *frame, items func() (any, bool, error), sized any) {
	l.f, l.items, l.sized = f, items, sized
	l.length, l.index0 = -1, -1
	l.before, l.current, l.after, l.changed = missing, missing, missing, missing
}

func (l *loopContext) PyType() string { return "jinja2.runtime.LoopContext" }
func (l *loopContext) PyTruth() bool  { n, err := l.count(); return err == nil && n > 0 }
func (l *loopContext) PyRepr() string {
	n, _ := l.count()
	return "<LoopContext " + itoa(l.index0+1) + "/" + itoa(n) + ">"
}

// next returns the item of the next round.
func (l *loopContext) next() (any, bool, error) {
	v, ok, err := l.after, true, error(nil)
	if l.after == any(missing) {
		v, ok, err = l.items()
	}
	if !ok || err != nil {
		return nil, false, err
	}
	l.after = missing
	l.index0++
	l.before, l.current = l.current, v
	return v, true, nil
}

// peek returns the item of the next round without taking it, or missing.
func (l *loopContext) peek() (any, error) {
	if l.after != any(missing) {
		return l.after, nil
	}
	v, ok, err := l.items()
	if ok {
		l.after = v
	}
	return l.after, err
}

// count returns the length of the loop. If that is unknown, it reads all items at once.
func (l *loopContext) count() (int, error) {
	if l.length >= 0 {
		return l.length, nil
	}
	if l.sized != nil {
		if n, err := lengthOf(l.sized); err == nil {
			l.length = n
			return n, nil
		}
	}
	left, err := l.f.listOf(&iterator{next: l.items})
	if err != nil {
		return 0, err
	}
	l.items = iterateItems(left)
	l.length = len(left) + l.index0 + 1
	if l.after != any(missing) {
		l.length++
	}
	return l.length, nil
}

// Names returns the attributes of loop.
func (l *loopContext) Names() []string {
	return []string{"index", "index0", "revindex", "revindex0", "first", "last", "length", "depth", "depth0", "previtem",
		"nextitem"}
}

// GetAttr returns an attribute of loop.
func (l *loopContext) GetAttr(_ context.Context, name string) (any, bool, error) {
	switch name {
	case "index":
		return l.index0 + 1, true, nil
	case "index0":
		return l.index0, true, nil
	case "first":
		return l.index0 == 0, true, nil
	case "depth":
		return l.depth0 + 1, true, nil
	case "depth0":
		return l.depth0, true, nil
	case "previtem":
		if l.index0 == 0 {
			return l.f.undefinedBecause("there is no previous item", name), true, nil
		}
		return l.before, true, nil
	case "last":
		v, err := l.peek()
		return v == any(missing), true, err
	case "nextitem":
		v, err := l.peek()
		if v == any(missing) {
			v = l.f.undefinedBecause("there is no next item", name)
		}
		return v, true, err
	}
	return l.countAttr(name)
}

func (l *loopContext) countAttr(name string) (any, bool, error) {
	switch name {
	case "length", "revindex", "revindex0":
	default:
		return nil, false, nil
	}
	n, err := l.count()
	switch name {
	case "revindex":
		n -= l.index0
	case "revindex0":
		n -= l.index0 + 1
	}
	return n, true, err
}

// recurse implements loop(items) in a recursive loop.
func (l *loopContext) recurse(c *Call) (any, error) {
	if err := c.bind("loop", []Param{Arg("iterable")}); err != nil {
		return nil, err
	}
	if l.again == nil {
		return nil, typeError("The loop must have the 'recursive' marker to be called recursively.")
	}
	return l.again(c.Args[0], l.depth0+1)
}

func loopMethods() map[string]*method {
	return map[string]*method{
		"cycle": {params: []Param{Rest("args")}, call: func(c *Call, self any) (any, error) {
			args := c.Args[0].(value.Tuple)
			if len(args) == 0 {
				return nil, typeError("no items for cycling given")
			}
			return args[self.(*loopContext).index0%len(args)], nil
		}},
		"changed": {params: []Param{Rest("value")}, call: func(c *Call, self any) (any, error) {
			l := self.(*loopContext)
			if l.changed != any(missing) {
				if same, err := c.f.equal(l.changed, c.Args[0]); same || err != nil {
					return false, err
				}
			}
			l.changed = c.Args[0]
			return true, nil
		}},
	}
}
