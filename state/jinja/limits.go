package jinja

import (
	"context"
	"math"
)

// Limits limit the resources of one Render. A zero field stands for the default.
type Limits struct {
	Steps       int // statements, loop rounds, calls, and sizes of operands (see weigh); 5 million
	OutputBytes int // 64 MiB
	MemoryBytes int // of all strings and lists that are created; 1 GiB
	Depth       int // nested macros, includes and loops; 200
}

func (l Limits) withDefaults() Limits {
	set := func(n *int, otherwise int) {
		if *n <= 0 {
			*n = otherwise
		}
	}
	set(&l.Steps, 5_000_000)
	set(&l.OutputBytes, 64<<20)
	set(&l.MemoryBytes, 1<<30)
	set(&l.Depth, 200)
	return l
}

// limitError is the error when a limit is exceeded.
type limitError struct{ message, hint string }

func (e *limitError) Error() string { return e.message }

// run holds the data of one Render.
type run struct {
	ctx     context.Context
	env     *Env
	limits  Limits
	steps   int
	check   int // number of steps at which the context is checked again
	memory  int
	depth   int
	globals map[string]any     // variables of all templates; loaded templates add to them
	added   map[string]any     // their additions
	loaded  map[string]*loaded // by the name of the template in the statement
	regexps map[regexpKey]*cachedRegexp
}

func newRun(ctx context.Context, e *Env) *run {
	r := &run{
		ctx: ctx, env: e, limits: e.options.Limits.withDefaults(), loaded: map[string]*loaded{}, added: map[string]any{},
		globals: make(map[string]any, len(e.globals)+16),
	}
	for name, v := range e.globals {
		r.globals[name] = v
	}
	return r
}

// often is the number of steps between checks of the limit and the context.
const often = 1000

// step counts steps. It returns an error if there are too many or the context is done.
func (r *run) step(n int) error {
	r.steps += n
	if r.steps < r.check {
		return nil
	}
	r.check = r.steps + often
	if err := r.ctx.Err(); err != nil {
		return err
	}
	if r.steps > r.limits.Steps {
		return &limitError{
			"the template does more than " + itoa(r.limits.Steps) + " steps",
			"look for a loop that never ends, or that goes through the same long list or text over and over",
		}
	}
	return nil
}

// charge counts memory for a new value.
func (r *run) charge(bytes int) error {
	if r.memory += bytes; r.memory > r.limits.MemoryBytes || r.memory > math.MaxInt/2 {
		return &limitError{
			"the template makes more than " + itoa(r.limits.MemoryBytes>>20) + " MiB of text and lists",
			"look for a string or list that grows in a loop",
		}
	}
	return nil
}

// enter increases the depth of calls, and leave decreases it.
func (r *run) enter() error {
	if r.depth++; r.depth > r.limits.Depth {
		return &limitError{
			"macros, includes or loops are nested more than " + itoa(r.limits.Depth) + " deep",
			"look for a macro that calls itself, or a template that includes itself, without an end",
		}
	}
	return nil
}

func (r *run) leave() { r.depth-- }
