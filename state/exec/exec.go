// Package exec runs compiled programs. For each step, it evaluates the requisites to decide whether the step runs, and
// runs it. It also runs the watch actions of watchers and listeners whose targets changed.
//
// The semantics are those of Salt 3006, including order numbers and special cases. The requisites of a step run before
// it, regardless of the order. A watch runs the step and, if that changed nothing, its watch action. A prereq makes a
// dry run of its target first. Listeners run once at the end, even after a failure that stopped the run. The file
// step.go runs a step (check, then apply if there is a difference); requisite.go evaluates its requisites.
package exec

import (
	"context"
	"time"

	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/redact"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Runner runs programs on a host.
type Runner struct {
	Host     *host.Host
	Modules  module.Registry
	Call     Caller
	Observer Observer         // nil for none
	Shell    string           // the shell that runs guards; "/bin/sh" by default
	Redactor *redact.Redactor // nil for none

	Test     bool // check, but change nothing
	Failhard bool // stop at the first failure

	// Parallel is the number of steps that may run at once, if their functions allow it (module.Concurrent); below 2,
	// steps run in order.
	Parallel int

	// Grace is the time that a running step has to end after the run was cancelled; 0 means no limit. A package manager
	// that changes packages may continue for longer.
	Grace time.Duration

	decoder module.Decoder
	crew    crew
}

// Run runs the steps of a program until all have run, a step with failhard fails, or ctx is done. If the deadline of
// ctx passes, Run cancels the running step at once; if ctx is cancelled, Run cancels the step after Grace. The results
// are in the order of the run, or in the order of the program if Parallel is above 1.
func (r *Runner) Run(ctx context.Context, p *compile.Program) *Results {
	if o, ok := r.Observer.(RedactorUser); ok && r.Redactor != nil {
		o.Redacting(r.Redactor)
	}
	if o, ok := r.Observer.(ProgramObserver); ok {
		o.ProgramStarted(p.Steps)
	}
	w := &walk{runner: r, running: newResults(), pre: map[string]*Result{}, flags: map[*compile.Step]*flags{},
		program: p.Steps, tried: map[*compile.Step]bool{}, made: map[*compile.Step]module.Report{}}
	defer r.crew.end()
	defer w.withAside(ctx)()
	if r.Parallel > 1 {
		w.sideBySide(ctx, p.Steps)
		w.settle(p.Steps)
	} else {
		w.steps(ctx, p.Steps)
	}
	if ctx.Err() == nil {
		w.listen(ctx, p.Steps)
	}
	w.settle(p.Steps)
	if r.Parallel > 1 {
		w.inOrder()
	}
	return w.running
}

// RunID runs the steps of one ID, each with the steps it requires and no others.
func (r *Runner) RunID(ctx context.Context, p *compile.Program, id string) *Results {
	w := &walk{runner: r, running: newResults(), pre: map[string]*Result{}, flags: map[*compile.Step]*flags{},
		program: p.Steps, tried: map[*compile.Step]bool{}, made: map[*compile.Step]module.Report{}}
	defer r.crew.end()
	for _, s := range p.Steps {
		if s.ID() == id {
			w.steps(ctx, []*compile.Step{s})
		}
	}
	w.settle(p.Steps)
	return w.running
}

// walk holds the state of one run of a program. Its maps with string keys are keyed by tag, since requisites look up
// results by tag.
type walk struct {
	runner  *Runner
	running *Results
	pre     map[string]*Result // results of dry runs for prereq
	active  map[string]bool    // steps whose requisites are being run, to detect cycles
	flags   map[*compile.Step]*flags
	number  int  // Salt's __run_num__ of the next result
	stopped bool // failhard
	// predicted has the steps that would or may change something in a dry run, in the order of the run. It is append-only.
	predicted []*compile.Step
	program   []*compile.Step
	rest      []*compile.Step                 // the current step and those after it
	tried     map[*compile.Step]bool          // steps for which a batch was tried
	made      map[*compile.Step]module.Report // changes that batches made for later steps
	// planned lists the changes that the earlier steps of a dry run would make to accounts.
	planned []any
	// declared has what the steps have declared at paths.
	declared declarations
	wide     *wide  // nil if steps run in order
	aside    *aside // nil if only the steps of one ID run
}

// flags holds what a run has found out about a step so far, other than its result.
type flags struct {
	prereq      bool // make a dry run of it first, since another step depends on whether it would change something
	prerequired bool // another step runs before it, if it would change something
	unknown     bool // in a dry run: only a real run can tell whether it runs, or runs its watch action
	again       bool // of the steps that it listens to, only steps that act at every run changed something
}

func (w *walk) flag(s *compile.Step) *flags {
	f, ok := w.flags[s]
	if !ok {
		f = &flags{}
		w.flags[s] = f
	}
	return f
}

func (w *walk) steps(ctx context.Context, steps []*compile.Step) {
	for i, s := range steps {
		w.rest = steps[i:]
		if w.stopped || ctx.Err() != nil {
			return
		}
		w.active = map[string]bool{}
		if w.running.Get(s.Tag()) == nil {
			w.step(ctx, s, 0)
			w.stopped = w.stopped || w.failsHard(s)
		}
	}
}

// maxDepth limits how often a step is tried again after its requisites ran; once is usually enough.
const maxDepth = 20

// step runs a step after its requisites.
func (w *walk) step(ctx context.Context, s *compile.Step, depth int) {
	tag := s.Tag()
	if _, ok := s.Targets("prerequired"); !ok {
		w.active[tag] = true
	}
	status := w.status(s)
	if status != unmet {
		w.act(ctx, s, status)
		return
	}
	requisites, lost := w.open(s)
	if len(lost) > 0 {
		w.record(w.lacking(s, lost))
		return
	}
	if done := w.runRequisites(ctx, s, requisites); done {
		return
	}
	switch {
	case w.flag(s).prereq:
		w.dryAfterRequisites(ctx, s)
	case depth+1 >= maxDepth:
		w.put(w.notRun(s, false, w.cycleComment()))
	default:
		w.step(ctx, s, depth+1)
	}
}

// act runs or skips a step, depending on the status of its requisites.
func (w *walk) act(ctx context.Context, s *compile.Step, st status) {
	switch st {
	case failed:
		w.requisiteFailed(s)
	case changed:
		w.changed(ctx, s)
	case quiet:
		r := w.notRun(s, true, "not run: the states that it is a prereq for would change nothing")
		r.NotRun = false
		w.pre[s.Tag()] = r
		w.record(r)
	case noFailure:
		w.record(w.notRun(s, true, "not run: none of its onfail requisites failed"))
	case noChange:
		w.record(w.notRun(s, true, "not run: none of its onchanges requisites changed"))
	default:
		w.run(ctx, s)
	}
}

// run runs a step, as a dry run if a prereq needs one.
func (w *walk) run(ctx context.Context, s *compile.Step) {
	dry := w.flag(s).prereq
	r := w.call(ctx, s)
	if dry {
		w.pre[s.Tag()] = r
		return
	}
	if w.flag(s).unknown && r.pending == nil {
		r = w.conditional(ctx, s, r)
	}
	w.put(r)
}

// changed runs a step for which a watched step changed. If the step itself changes nothing, changed runs its watch
// action.
func (w *walk) changed(ctx context.Context, s *compile.Step) {
	if w.flag(s).prereq {
		w.run(ctx, s)
		return
	}
	r := w.call(ctx, s)
	if r.Changes.Len() == 0 && !r.SkipWatch {
		r = w.watch(ctx, s)
		r.Step = s
	}
	w.put(r)
}

// record numbers a result and stores it.
func (w *walk) record(r *Result) {
	r.RunNum = w.number
	w.number++
	w.put(r)
}

func (w *walk) put(r *Result) {
	w.running.put(r)
	if w.runner.Test && r.Outcome == Pending {
		w.predicted = append(w.predicted, r.Step)
		w.plan(r)
	}
	if o := w.runner.Observer; o != nil && r.pending == nil {
		o.StepDone(r)
	}
}

// plan records the changes that a step of a dry run would make to accounts.
func (w *walk) plan(r *Result) {
	if state := r.Step.State(); (state == "user" || state == "group") && !r.Unknown && r.Predicted.Len() > 0 {
		w.planned = append(w.planned, value.NewMap("function", r.Step.Function(), "name", r.Step.Name(), "changes",
			r.Predicted))
	}
}

// failsHard reports whether the run stops at this step.
func (w *walk) failsHard(s *compile.Step) bool {
	r := w.running.Get(s.Tag())
	if w.runner.Test || r == nil || r.pending != nil {
		return false
	}
	return r.Outcome == Failed && !r.MayFail() && w.hard(s)
}

// hard reports whether the run stops if a step fails.
func (w *walk) hard(s *compile.Step) bool {
	if mayFail(s) {
		return false
	}
	if v, ok := s.Chunk.Get("failhard"); ok {
		return value.Truth(v)
	}
	return w.runner.Failhard
}

// settle waits for steps that still run in parallel, and marks the failures that an onfail step handled.
func (w *walk) settle(steps []*compile.Step) {
	for _, r := range w.running.list {
		w.wait(r)
	}
	w.remedies(steps)
}

// wait waits for a step that runs in parallel and stores its result.
func (w *walk) wait(r *Result) {
	if r == nil || r.pending == nil {
		return
	}
	w.takeOver(r, <-r.pending)
}

func (w *walk) takeOver(r, done *Result) {
	if done == nil {
		r.pending, r.never = nil, true
		return
	}
	done.Step, done.RunNum, done.Parallel = r.Step, r.RunNum, true
	*r = *done
	if o := w.runner.Observer; o != nil {
		o.StepDone(r)
	}
}
