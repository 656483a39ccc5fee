package exec

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/module"
)

// aside holds the functions that run beside the steps of a run, such as a download for later steps.
type aside struct {
	ctx     context.Context
	running sync.WaitGroup
}

// beside starts f in a goroutine. The context of f is cancelled at the end of the run.
func (a *aside) beside(f func(context.Context)) {
	a.running.Add(1)
	go func() {
		defer a.running.Done()
		f(a.ctx)
	}()
}

// withAside lets steps start functions that run beside other steps. end cancels them and waits for them.
func (w *walk) withAside(ctx context.Context) (end func()) {
	own, cancel := context.WithCancel(ctx)
	w.aside = &aside{ctx: own}
	return func() {
		cancel()
		w.aside.running.Wait()
	}
}

// acting returns the context for the action of a step. It lets the step do work for later steps.
func (t try) acting(ctx context.Context, r *Runner) context.Context {
	if t.aside == nil || t.later == nil {
		return ctx
	}
	return module.WithLater(ctx, &module.Later{Beside: t.aside.beside, States: func() []module.Resource {
		var resources []module.Resource
		for _, s := range t.later(t.step) {
			if resource, ok := r.resource(try{step: s}, &Result{Step: s}); ok {
				resources = append(resources, resource)
			}
		}
		return resources
	}})
}

// later returns the following steps of the same state that will certainly run, up to the first step that may add a
// package repository.
func (w *walk) later(s *compile.Step) (steps []*compile.Step) {
	for _, l := range w.rest {
		switch {
		case l == s || w.running.Get(l.Tag()) != nil:
		case ofRepositories(l):
			return steps
		case l.State() == s.State() && w.certain(l):
			steps = append(steps, l)
		}
	}
	return steps
}

// certain reports whether a step acts unless another one fails: it has no guard, no requisite on the changes of another
// step, and none of the steps that it waits for may still add a package repository.
func (w *walk) certain(s *compile.Step) bool {
	if slices.ContainsFunc([]string{"onlyif", "unless", "creates", followUnsafe}, s.Chunk.Has) {
		return false
	}
	if _, asked := s.Targets("prerequired"); asked {
		return false
	}
	return !slices.ContainsFunc(s.Requisites, func(q compile.Requisite) bool {
		return !strings.HasPrefix(q.Kind, "require") && !strings.HasPrefix(q.Kind, "watch") && q.Kind != "listen" ||
			slices.ContainsFunc(q.Targets, func(t compile.Target) bool { return slices.ContainsFunc(t.Steps, w.mayBring) })
	})
}

// mayBring reports whether a step that has not run yet may add a package repository.
func (w *walk) mayBring(s *compile.Step) bool {
	return w.running.Get(s.Tag()) == nil && ofRepositories(s)
}

// ofRepositories reports whether a step may add a package repository, by its state or by the file that it manages.
func ofRepositories(s *compile.Step) bool { return s.State() == "pkgrepo" || bringsRepository(s) }
