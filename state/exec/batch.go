package exec

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// A batch is one action for several steps that follow each other, such as one transaction of the package manager for
// ten pkg.installed states. The first of them acts for all. Each of the others still runs in its turn: it finds nothing
// left to do, and reports what the batch changed for it. If the batch failed or did only a part, each step does the
// rest by itself and reports its own failure. If the run ends before the turn of a step, the last step that ran reports
// what the batch changed for it.

// apart returns the arguments that exclude a step from batches, because the run decides only in the step's turn whether
// or how often it acts.
func apart() []string {
	return []string{"onlyif", "unless", "creates", "check_cmd", "retry", "parallel", "timeout", followUnsafe}
}

// together returns the following steps for which step s may act as well. What they require has run, so no other
// step can run between them.
func (w *walk) together(s *compile.Step) []*compile.Step {
	if w.runner.Test || len(w.rest) == 0 || w.rest[0] != s || w.tried[s] || !w.joins(s) {
		return nil
	}
	n := 1
	for n < len(w.rest) && w.rest[n].State() == s.State() && w.rest[n].Fun() == s.Fun() && w.joins(w.rest[n]) {
		n++
	}
	return w.rest[1:n]
}

// joins reports whether a step may be a part of a batch.
func (w *walk) joins(s *compile.Step) bool {
	if !w.ready(s) || *w.flag(s) != (flags{}) || w.running.Get(s.Tag()) != nil {
		return false
	}
	if v, given := s.Chunk.Get("aggregate"); given && !value.Truth(v) {
		return false
	}
	if _, asked := s.Targets("prerequired"); asked || slices.ContainsFunc(apart(), s.Chunk.Has) {
		return false
	}
	resource, _ := w.runner.Modules.New(s.State(), s.Fun())
	_, ok := resource.(module.Batcher)
	return ok
}

// ready reports whether a step has no requisites but such as have run and are met, so that it will run in any case.
func (w *walk) ready(s *compile.Step) bool {
	for _, q := range s.Requisites {
		for _, t := range q.Targets {
			if !strings.HasPrefix(q.Kind, "require") || slices.ContainsFunc(t.Steps, func(s *compile.Step) bool {
				r := w.running.Get(s.Tag())
				return r == nil || r.pending != nil
			}) {
				return false
			}
		}
	}
	return w.status(s) == met
}

// batch lets a step that has something to do act for the other steps of its batch as well. It reports whether it did,
// or tried. It stores the changes of the step itself in the try and those of the others in the result.
func (r *Runner) batch(ctx context.Context, first module.Resource, t *try, result *Result) bool {
	batcher, ok := first.(module.Batcher)
	if !ok || t.together == nil {
		return false
	}
	result.batch, t.together = t.together(t.step), nil
	if len(result.batch) == 0 {
		return false
	}
	reports := batcher.Batch(host.Applying(t.acting(ctx, r)), r.hostOf(ctx, t.step).Ending(ctx), r.resources(result.batch))
	if len(reports) == 0 {
		return false
	}
	t.made, result.made = reports[0], reports[1:]
	return true
}

// resources yields the resources of steps up to the first whose arguments are wrong.
func (r *Runner) resources(steps []*compile.Step) iter.Seq[module.Resource] {
	return func(yield func(module.Resource) bool) {
		for _, s := range steps {
			if resource, ok := r.resource(try{step: s}, &Result{Step: s}); !ok || !yield(resource) {
				return
			}
		}
	}
}

// keepMade stores the changes that a step made for others until these run. A batch is tried once.
func (w *walk) keepMade(r *Result) {
	for i, made := range r.made {
		w.tried[r.batch[i]], w.made[r.batch[i]] = true, made
	}
	r.batch, r.made = nil, nil
}

// takeRest adds to the last result of a run the changes that a batch made for the steps after it.
func (w *walk) takeRest(r *Result) {
	for _, s := range w.rest {
		if made, ok := w.made[s]; ok && s != r.Step && w.running.Get(s.Tag()) == nil {
			r.takeMade(made)
		}
	}
	w.runner.redact(r)
}

// takeMade adds the changes that a batch made for a step to its result. If both changed the same object, the result has
// the change of the step itself.
func (r *Result) takeMade(made module.Report) {
	if made.Changes.Len() == 0 {
		return
	}
	changes := made.Changes.Clone()
	changes.Update(r.Changes)
	if r.Outcome == Succeeded && r.Changes.Len() == 0 {
		r.Comment = made.Comment
	}
	r.Changes = changes
	r.Warnings = append(r.Warnings, made.Warnings...)
}
