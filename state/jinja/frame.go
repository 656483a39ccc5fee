package jinja

// function is a part of a template for which Jinja2 generates a Python function: a template, a block, a macro, the body
// of a recursive loop, or the test of a loop.
type function struct {
	slots int // number of variables
	enter []entry
	body  []stmt
}

// frame is one call of a function.
type frame struct {
	r      *run
	t      *Template
	up     *frame // frame of the function around this one
	scope  *scope
	slots  []any
	out    *writer
	parent *Template // the template that this one extends
}

func newFrame(fn *function, r *run, t *Template, s *scope, up *frame, out *writer) *frame {
	f := &frame{r: r, t: t, up: up, scope: s, out: out, slots: make([]any, fn.slots)}
	for i := range f.slots {
		f.slots[i] = missing
	}
	return f
}

// place is the slot of a variable: up is the number of functions outwards.
type place struct{ up, slot int }

func (f *frame) at(p place) *any {
	for n := p.up; n > 0; n-- {
		f = f.up
	}
	return &f.slots[p.slot]
}

// entry is the initial value of a variable.
type entry struct {
	kind loadKind
	slot int
	name string // of loadResolve
	from place  // of loadAlias
}

// start sets the initial values of the variables of a frame.
func (f *frame) start(entries []entry) {
	for i := range entries {
		e := &entries[i]
		switch e.kind {
		case loadResolve:
			f.slots[e.slot] = f.scope.resolve(e.name)
		case loadAlias:
			f.slots[e.slot] = *f.at(e.from)
		case loadMissing:
			f.slots[e.slot] = missing
		}
	}
}

// end drops the variables of a frame.
func (f *frame) end(entries []entry) {
	for i := range entries {
		f.slots[entries[i].slot] = missing
	}
}

// flow says how a statement ended.
type flow uint8

const (
	flowNext flow = iota
	flowBreak
	flowContinue
)

// stmt is a statement that can be run, expr an expression.
type stmt interface {
	exec(f *frame) (flow, error)
}

type expr interface {
	eval(f *frame) (any, error)
}

// run runs a function's body.
func (fn *function) run(f *frame) error {
	f.start(fn.enter)
	_, err := execAll(fn.body, f)
	return err
}

func execAll(body []stmt, f *frame) (flow, error) {
	for _, s := range body {
		if next, err := s.exec(f); next != flowNext || err != nil {
			return next, err
		}
	}
	return flowNext, nil
}

// run runs a template in a scope, and then the template it extends.
func (t *Template) run(r *run, s *scope, out *writer) error {
	if err := r.enter(); err != nil {
		return (&frame{r: r, t: t}).fail(0, err)
	}
	defer r.leave()
	f := newFrame(t.root, r, t, s, nil, out)
	if err := t.root.run(f); err != nil || f.parent == nil {
		return err
	}
	return f.parent.run(r, s, out)
}
