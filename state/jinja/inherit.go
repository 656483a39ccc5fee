package jinja

import (
	"context"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// extendsStmt is an extends statement: it sets the parent of the frame.
type extendsStmt struct {
	template expr
	again    bool // an extends before this one may have run
	at       int
	line     int
}

func (s *extendsStmt) exec(f *frame) (flow, error) {
	if s.again && f.parent != nil {
		return flowNext, f.onLine(s.line, s.at, templateError("extended multiple times"))
	}
	name, err := s.template.eval(f)
	var l *loaded
	if err == nil {
		l, err = f.load(name)
	}
	if err != nil {
		return flowNext, f.onLine(s.line, s.at, err)
	}
	f.parent = l.template
	for name, fn := range l.template.blocks {
		f.scope.blocks[name] = append(f.scope.blocks[name], &block{fn, l.template})
	}
	return flowNext, nil
}

// blockStmt prints a block as the outermost child template defines it.
type blockStmt struct {
	name     string
	scoped   bool
	required bool
	locals   []local
	at       int
	line     int
}

// local is a variable of a frame that is passed to another scope.
type local struct {
	name  string
	place place
}

func (f *frame) locals(locals []local) map[string]any {
	values := make(map[string]any, len(locals))
	for _, l := range locals {
		values[l.name] = *f.at(l.place)
	}
	return values
}

func (s *blockStmt) exec(f *frame) (flow, error) {
	blocks := f.scope.blocks[s.name]
	if s.required && len(blocks) <= 1 {
		return flowNext, f.onLine(s.line, s.at, templateError("Required block "+value.Repr(s.name)+" not found"))
	}
	sc := f.scope
	if s.scoped {
		sc = sc.derived(f.locals(s.locals))
	}
	if err := f.runBlock(blocks[0], sc); err != nil {
		return flowNext, f.onLine(s.line, s.at, err)
	}
	return flowNext, nil
}

func (f *frame) runBlock(b *block, sc *scope) error {
	if err := f.r.enter(); err != nil {
		return err
	}
	defer f.r.leave()
	inner := newFrame(b.fn, f.r, b.template, sc, nil, f.out)
	return b.fn.run(inner)
}

// blockReference is super, or a block of self: a call returns the output of the block.
type blockReference struct {
	f     *frame
	name  string
	depth int
}

func (b *blockReference) PyType() string { return "jinja2.runtime.BlockReference" }
func (b *blockReference) PyTruth() bool  { return true }
func (b *blockReference) PyRepr() string { return "<BlockReference>" }

func (b *blockReference) call(c *Call) (any, error) {
	if err := c.bind("super", nil); err != nil {
		return nil, err
	}
	blocks := b.f.scope.blocks[b.name]
	return c.f.captured(func() error {
		inner := *b.f
		inner.out = c.f.out
		return inner.runBlock(blocks[b.depth], b.f.scope)
	})
}

// GetAttr returns the attribute super: the block that this one overrides.
func (b *blockReference) GetAttr(_ context.Context, name string) (any, bool, error) {
	if name != "super" {
		return nil, false, nil
	}
	return b.f.blockAt(b.name, b.depth+1), true, nil
}

func (f *frame) blockAt(name string, depth int) any {
	if depth >= len(f.scope.blocks[name]) {
		return f.undefinedBecause("there is no parent block called "+value.Repr(name)+".", "super")
	}
	return &blockReference{f, name, depth}
}

// superOf returns the definition of a block that fn overrides.
func (f *frame) superOf(name string, fn *function) any {
	for i, b := range f.scope.blocks[name] {
		if b.fn == fn {
			return f.blockAt(name, i+1)
		}
	}
	return f.blockAt(name, len(f.scope.blocks[name]))
}

// selfReference is the variable self.
type selfReference struct{ f *frame }

func (s *selfReference) PyType() string { return "jinja2.runtime.TemplateReference" }
func (s *selfReference) PyTruth() bool  { return true }
func (s *selfReference) PyRepr() string { return "<TemplateReference " + value.Repr(s.f.t.name) + ">" }

// GetItem returns a block by its name.
func (s *selfReference) GetItem(_ context.Context, key any) (any, bool, error) {
	name, ok := key.(string)
	if !ok || len(s.f.scope.blocks[name]) == 0 {
		return nil, false, nil
	}
	return &blockReference{s.f, name, 0}, true, nil
}

// specialsStmt sets self and super if a template or a block uses them.
type specialsStmt struct {
	self  int // slot, or -1
	super int
	name  string // of the block
	fn    *function
}

func (s *specialsStmt) exec(f *frame) (flow, error) {
	if s.self >= 0 {
		f.slots[s.self] = &selfReference{f}
	}
	if s.super >= 0 {
		f.slots[s.super] = f.superOf(s.name, s.fn)
	}
	return flowNext, nil
}
