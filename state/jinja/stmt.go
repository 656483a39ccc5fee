package jinja

import (
	"strconv"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// textStmt prints literal text.
type textStmt struct {
	text string
	at   int
}

func (s *textStmt) exec(f *frame) (flow, error) {
	f.out.mark(f.t, s.at, true)
	if err := f.out.write(s.text); err != nil {
		return flowNext, f.fail(s.at, err)
	}
	return flowNext, nil
}

// printStmt prints an expression.
type printStmt struct {
	node expr
	at   int
	line int
}

func (s *printStmt) exec(f *frame) (flow, error) {
	v, err := s.node.eval(f)
	if err == nil {
		err = f.print(v, s.at)
	}
	if err != nil {
		return flowNext, f.onLine(s.line, s.at, err)
	}
	return flowNext, nil
}

func (f *frame) print(v any, at int) error {
	f.out.mark(f.t, at, false)
	switch v := v.(type) {
	case string:
		return f.out.write(v)
	case int:
		f.out.buf = strconv.AppendInt(f.out.buf, int64(v), 10)
		return f.out.full()
	case *value.Map:
		if err := printable(v, 0); err != nil {
			return err
		}
	}
	if err := f.weigh(v); err != nil {
		return err
	}
	text, err := value.ToStr(v)
	if err != nil {
		return err
	}
	return f.out.write(text)
}

// printable returns an error for a mapping with a strict undefined value at any depth: Salt prints mappings as YAML,
// and so prints every value.
func printable(m *value.Map, depth int) error {
	const deep = 100
	for _, v := range m.All() {
		if err := strict(v); err != nil {
			return err
		}
		if inner, ok := v.(*value.Map); ok && depth < deep {
			if err := printable(inner, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// unlessExtended runs its body only while the template extends no other.
type unlessExtended struct{ body []stmt }

func (s *unlessExtended) exec(f *frame) (flow, error) {
	if f.parent != nil {
		return flowNext, nil
	}
	return execAll(s.body, f)
}

// ifStmt runs the first branch whose test is true. The last may have no test.
type ifStmt struct{ branches []branch }

type branch struct {
	test expr
	body []stmt
	at   int
	line int
}

func (s *ifStmt) exec(f *frame) (flow, error) {
	if err := f.r.step(1); err != nil {
		return flowNext, f.onLine(s.branches[0].line, s.branches[0].at, err)
	}
	for i := range s.branches {
		b := &s.branches[i]
		if b.test != nil {
			holds, err := evalTruth(f, b.test, b.at)
			if err != nil {
				return flowNext, f.onLine(b.line, b.at, err)
			}
			if !holds {
				continue
			}
		}
		return execAll(b.body, f)
	}
	return flowNext, nil
}

// filtered applies a chain of filters to a text, which is the operand of the innermost one.
func (f *frame) filtered(e *filterExpr, text string) (any, error) {
	var v any = text
	var err error
	switch inner := e.node.(type) {
	case nil:
	case *filterExpr:
		v, err = f.filtered(inner, text)
	default:
		v, err = inner.eval(f)
	}
	if err != nil {
		return nil, err
	}
	return e.apply(f, v)
}

// filterStmt is a filter block.
type filterStmt struct {
	enter  []entry
	body   []stmt
	filter *filterExpr
	at     int
	line   int
}

func (s *filterStmt) exec(f *frame) (flow, error) {
	f.start(s.enter)
	var next flow
	text, err := f.captured(func() (err error) {
		next, err = execAll(s.body, f)
		return err
	})
	if err != nil || next != flowNext {
		return next, err
	}
	v, err := f.filtered(s.filter, text)
	if err == nil {
		if text, ok := v.(string); ok {
			err = f.print(text, s.at)
		} else {
			err = typeError("a filter block gives text, and its filter gave a " + value.TypeName(v))
		}
	}
	f.end(s.enter)
	if err != nil {
		return flowNext, f.onLine(s.line, s.at, err)
	}
	return flowNext, nil
}

// withStmt is a with block.
type withStmt struct {
	enter   []entry
	targets []target
	values  []expr
	body    []stmt
	at      int
	line    int
}

func (s *withStmt) exec(f *frame) (flow, error) {
	f.start(s.enter)
	for i, t := range s.targets {
		v, err := s.values[i].eval(f)
		if err == nil {
			err = t.assign(f, v)
		}
		if err != nil {
			return flowNext, f.onLine(s.line, s.at, err)
		}
	}
	next, err := execAll(s.body, f)
	f.end(s.enter)
	return next, err
}

// scopeStmt runs its body in a scope of its own.
type scopeStmt struct {
	enter []entry
	body  []stmt
}

func (s *scopeStmt) exec(f *frame) (flow, error) {
	f.start(s.enter)
	next, err := execAll(s.body, f)
	f.end(s.enter)
	return next, err
}

// doStmt is a do statement.
type doStmt struct {
	node expr
	at   int
	line int
}

func (s *doStmt) exec(f *frame) (flow, error) {
	if _, err := s.node.eval(f); err != nil {
		return flowNext, f.onLine(s.line, s.at, err)
	}
	return flowNext, nil
}

// controlStmt is break or continue.
type controlStmt struct{ flow flow }

func (s *controlStmt) exec(*frame) (flow, error) { return s.flow, nil }
