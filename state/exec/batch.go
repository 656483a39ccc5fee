package exec

import (
	"context"

	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
)

// A batch is one action for several steps that follow each other, such as one transaction of the package manager for ten
// pkg.installed states. The first of them acts for all. Each of the others is still run when its turn comes: it finds
// nothing left to do, and reports what the batch changed for it. If the batch failed, or did a part, a step does the rest
// by itself, and the failure is its own.

// apart are arguments with which a step is no part of a batch: whether or how often it acts is decided when its turn comes.
func apart() []string {
	return []string{"onlyif", "unless", "creates", "check_cmd", "retry", "parallel", "failhard", "timeout", followUnsafe}
}

// together returns the steps after the one whose turn it is for which it may act as well. None has a requisite, so nothing
// can come between them, and none stops the run by its failure.
func (w *walk) together(s *compile.Step) []*compile.Step {
	if w.runner.Test || w.runner.Failhard || len(w.rest) == 0 || w.rest[0] != s || w.tried[s] || !w.joins(s) {
		return nil
	}
	n := 1
	for n < len(w.rest) && w.rest[n].State() == s.State() && w.joins(w.rest[n]) {
		w.tried[w.rest[n]] = true
		n++
	}
	return w.rest[1:n]
}

// joins reports whether a step may be a part of a batch.
func (w *walk) joins(s *compile.Step) bool {
	resource, _ := w.runner.Modules.New(s.State(), s.Fun())
	if _, ok := resource.(module.Batcher); !ok || len(s.Requisites) > 0 || *w.flag(s) != (flags{}) || w.running.Get(s.Tag()) != nil {
		return false
	}
	if _, asked := s.Targets("prerequired"); asked {
		return false
	}
	for _, argument := range apart() {
		if s.Chunk.Has(argument) {
			return false
		}
	}
	return true
}

// batch lets a step act for those of its batch. It returns what was done for the step itself; the result keeps the rest.
func (r *Runner) batch(ctx context.Context, first module.Resource, t try, result *Result) module.Report {
	var others []module.Resource
	for _, s := range t.together {
		resource, ok := r.resource(try{step: s}, &Result{Step: s})
		if !ok {
			break
		}
		others = append(others, resource)
	}
	if len(others) == 0 {
		return module.Report{}
	}
	reports := first.(module.Batcher).Batch(host.Applying(ctx), r.hostOf(t.step).Ending(ctx), others)
	if len(reports) == 0 {
		return module.Report{}
	}
	result.made = reports[1:]
	return reports[0]
}

// keepMade keeps what a step did for others until their turns come.
func (w *walk) keepMade(steps []*compile.Step, r *Result) {
	for i, report := range r.made {
		w.made[steps[i]] = report
	}
	r.made = nil
}

// takeMade adds what a batch has done for a step to its result. What the step did by itself counts where both changed
// the same.
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
