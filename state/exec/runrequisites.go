package exec

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// runRequisites runs the requisites that have not run yet. It reports whether the step itself must not run afterwards,
// for example because the run ends.
func (w *walk) runRequisites(ctx context.Context, s *compile.Step, requisites []*compile.Step) (done bool) {
	for _, q := range requisites {
		tag := q.Tag()
		if w.running.Get(tag) != nil {
			continue
		}
		if w.active[tag] {
			return w.cycle(ctx, s, q)
		}
		w.step(ctx, q, 0)
		if w.failsHard(q) {
			w.stopped = true
			return true
		}
		if ctx.Err() != nil {
			return true
		}
	}
	return false
}

// cycle handles a requisite q of step s that waits for s itself: the two ends of a prereq, or a real cycle.
func (w *walk) cycle(ctx context.Context, s, q *compile.Step) bool {
	if w.flag(q).prerequired {
		if w.pre[s.Tag()] == nil {
			w.flag(s).prereq = true
			w.pre[q.Tag()] = w.call(ctx, s)
		}
		return true
	}
	w.record(w.notRun(s, false, w.cycleComment()))
	return true
}

// cycleComment returns the comment of a step in a cycle. It names the steps of the cycle.
func (w *walk) cycleComment() string {
	var names []string
	for _, other := range w.program {
		if name := other.SLS() + "." + other.ID(); w.active[other.Tag()] && w.running.Get(other.Tag()) == nil &&
			!slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return "its requisites form a cycle: " + strings.Join(names, ", ")
}

// dryAfterRequisites makes the dry run of the target of a prereq after its requisites have run.
func (w *walk) dryAfterRequisites(ctx context.Context, s *compile.Step) {
	status := w.status(s)
	r := w.call(ctx, s)
	if r.Changes.Len() == 0 && status == changed {
		r.Changes = value.NewMap("watch", "watch")
		r.Outcome = Pending
	}
	w.pre[s.Tag()] = r
}

// requisiteFailed records a step that cannot run. If a prereq has made a dry run of it, that result is used, as in
// Salt, without the changes, which did not happen; a real run adds that the step did not run.
func (w *walk) requisiteFailed(s *compile.Step) {
	if r := w.pre[s.Tag()]; r != nil {
		r.Changes, r.afterMayFail = value.NewMap(), w.afterMayFail(s)
		if !w.runner.Test {
			r.Comment = "not run: " + w.blame(s)
			w.runner.redact(r)
		}
		r.RunNum, w.number = w.number, w.number+1
		w.put(r)
		return
	}
	r := w.notRun(s, false, "not run: "+w.blame(s))
	r.NotRun, r.afterMayFail = false, w.afterMayFail(s)
	w.pre[s.Tag()] = r
	w.record(r)
}

// notRun returns the result of a step that did not run.
func (w *walk) notRun(s *compile.Step, ok bool, comment string) *Result {
	r := &Result{Step: s, Outcome: Failed, Changes: value.NewMap(), Comment: comment, Started: time.Now()}
	if ok {
		r.Outcome, r.NotRun = Succeeded, true
	}
	w.runner.redact(r)
	return r
}

// lacking returns the result of a step with requisites that do not exist. It includes the errors in the step's own
// arguments.
func (w *walk) lacking(s *compile.Step, lost []lostTarget) *Result {
	comment, hint := missing(lost)
	own := &Result{Step: s}
	if _, ok := w.runner.resource(try{step: s}, own); !ok {
		comment += "\n" + own.Comment
	}
	r := w.notRun(s, false, comment)
	r.Hint, r.Warnings = hint, own.Warnings
	w.runner.redact(r)
	return r
}
