package exec

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/redact"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// call runs a step, and repeats it according to its retry argument. A dry run for a prereq is made once, and has no
// number in the order of the run.
func (w *walk) call(ctx context.Context, s *compile.Step) *Result {
	dry := w.flag(s).prereq
	w.flag(s).prereq = false
	if dry {
		return w.runner.attempt(ctx, try{step: s, dry: true})
	}
	if o := w.runner.Observer; o != nil {
		o.StepStarted(s)
	}
	if s.Fun() == watchAction {
		return w.watch(ctx, s)
	}
	if value.Truth(s.Chunk.Value("parallel")) || w.beside(s) {
		return w.parallel(ctx, s)
	}
	t := w.tryOf(s)
	t.together, t.later, t.aside = w.together, w.later, w.aside
	r := w.numbered(w.runner.attempt(ctx, t))
	w.keepMade(r)
	r = w.retry(ctx, s, r)
	if len(w.made) > 0 && (ctx.Err() != nil || r.Outcome == Failed && w.hard(s)) {
		w.takeRest(r)
	}
	return r
}

// watch runs a step's watch action.
func (w *walk) watch(ctx context.Context, s *compile.Step) *Result {
	t := w.tryOf(s)
	t.prepared, t.watching, t.changed = false, true, w.changedBy(s)
	return w.numbered(w.runner.attempt(ctx, t))
}

// tryOf returns the data for the next try of a step.
func (w *walk) tryOf(s *compile.Step) try {
	return try{
		step: s, dry: w.runner.Test, prepared: w.prepared(s), again: w.reactsAgain(s), predicts: w.runner.Test,
		predicted: w.predicted, planned: w.planned, steps: w.program, made: w.made[s], declared: &w.declared,
	}
}

func (w *walk) numbered(r *Result) *Result {
	r.RunNum = w.number
	w.number++
	return r
}

// parallel runs a step concurrently with the following ones.
func (w *walk) parallel(ctx context.Context, s *compile.Step) *Result {
	r := w.numbered(&Result{Step: s, Outcome: Pending, Changes: value.NewMap(), Started: time.Now()})
	pending := make(chan *Result, 1)
	r.pending = pending
	t := w.tryOf(s)
	side := w.wide
	go func() {
		if side != nil {
			defer func() { side.finished <- struct{}{} }()
			if !side.enter(ctx) {
				pending <- nil
				return
			}
			defer func() { <-side.room }()
		}
		pending <- w.runner.attempt(ctx, t)
	}()
	return r
}

// watchAction is the function of the steps that run the watch actions of listeners.
const watchAction = "mod_watch"

func orElse(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

// try is one run of a step.
type try struct {
	step      *compile.Step
	dry       bool
	prepared  bool // in a dry run: a step that this one requires would or may change something
	predicts  bool // in a dry run of the whole program: coming has the earlier steps that would change something
	predicted []*compile.Step
	planned   []any           // changes that the steps of predicted would make to accounts
	steps     []*compile.Step // of the whole program
	watching  bool            // run the watch action
	changed   []string        // the watched steps that changed
	// together returns the steps for which this one may act as well, see batch.go; may be nil
	together func(*compile.Step) []*compile.Step
	// later returns the steps for which this one may fetch something, see later.go; may be nil
	later func(*compile.Step) []*compile.Step
	aside *aside        // may be nil
	made  module.Report // changes that an earlier step made for this one
	again bool          // it reacts only to steps that act at every run

	declared *declarations // by the steps before; nil in a dry run for a prereq
}

// attempt runs a step once. It ignores requisites.
func (r *Runner) attempt(ctx context.Context, t try) *Result {
	if follows(t.step) {
		ctx = host.WithFollowing(ctx)
	}
	return r.bounded(ctx, t.step, func(ctx context.Context) *Result { return r.once(ctx, t) })
}

// once runs a step once in ctx. It does the work of attempt, which limits the time.
func (r *Runner) once(ctx context.Context, t try) *Result {
	result := &Result{Step: t.step, Changes: value.NewMap(), Started: time.Now()}
	mark := r.Host.Mark()
	ctx = host.Attributing(ctx)
	defer func() {
		machineErr := r.Host.MachineErrorOf(ctx, mark)
		result.failOnMachineError(machineErr)
		r.Host.WithNames(errors.Join(result.cause, machineErr), &result.Comment, &result.Hint)
		result.findObstruction(r.Host)
		result.nameFollowing()
		result.Duration = time.Since(result.Started)
		r.redact(result)
	}()
	resource, ok := r.resource(t, result)
	if !ok {
		return result
	}
	if r.guarded(ctx, t.step, result) {
		t.discardGuard(true, result)
		return result
	}
	r.settle(ctx, resource, t, result)
	t.discardGuard(false, result)
	r.checkCommand(ctx, t.step, resource, result)
	t.declare(r.hostOf(ctx, t.step), result)
	result.Always = result.Outcome != Failed && (result.Outcome == Pending || result.Changes.Len() > 0) &&
		t.always(resource)
	return result
}

// always reports whether a step acts at every run: its resource does so, and no guard or requisite can keep the step
// from running. A step that reacts only to such steps acts at every run as well.
func (t try) always(resource module.Resource) bool {
	constant, ok := resource.(module.Constant)
	if t.watching && !t.again || !t.watching && (!ok || !constant.ActsAlways()) {
		return false
	}
	return !hasGuard(t.step) && !slices.ContainsFunc(t.step.Requisites, func(q compile.Requisite) bool {
		return q.Kind == "prereq" || strings.HasPrefix(q.Kind, "onfail") || strings.HasPrefix(q.Kind, "onchanges") && !t.again
	})
}

// hasGuard reports whether a guard may keep a step from running.
func hasGuard(s *compile.Step) bool {
	return slices.ContainsFunc([]string{"onlyif", "unless", "creates"}, s.Chunk.Has)
}

// mayNotRun reports whether a guard or a requisite may keep a step from running.
func mayNotRun(s *compile.Step) bool {
	return hasGuard(s) || slices.ContainsFunc(s.Requisites, func(q compile.Requisite) bool {
		return q.Kind == "prereq" || strings.HasPrefix(q.Kind, "onfail") || strings.HasPrefix(q.Kind, "onchanges")
	})
}

// reactsAgain reports whether a step runs because other steps changed something, and all of these act at every run.
func (w *walk) reactsAgain(s *compile.Step) bool {
	again := w.flag(s).again
	for _, q := range s.Requisites {
		if !strings.HasPrefix(q.Kind, "onchanges") && !strings.HasPrefix(q.Kind, "watch") {
			continue
		}
		for _, t := range q.Targets {
			for _, target := range t.Steps {
				r := w.running.Get(target.Tag())
				if r == nil || r.Outcome != Pending && r.Changes.Len() == 0 {
					continue
				}
				if !r.Always {
					return false
				}
				again = true
			}
		}
	}
	return again
}

// redact removes secrets from the texts of a result. It does not change the step; the methods ID and Name of the result
// redact what they return.
func (r *Runner) redact(result *Result) {
	result.redactor = r.Redactor
	result.Comment, result.Hint = result.shown(result.Comment), result.shown(result.Hint)
	for i, w := range result.Warnings {
		result.Warnings[i] = result.shown(w)
	}
	result.Changes, _ = r.Redactor.Value(result.Changes).(*value.Map)
	result.Predicted, _ = r.Redactor.Value(result.Predicted).(*value.Map)
	redact.Each(&result.Changes, redact.URLs)
	redact.Each(&result.Predicted, redact.URLs)
}

// resource returns the resource of the step. If there is none, or the arguments are wrong, it returns false, and the
// result has the reason.
func (r *Runner) resource(t try, result *Result) (module.Resource, bool) {
	s := t.step
	function := s.Fun()
	if t.watching {
		function = orElse(optional(s, "sfun"), function)
	}
	resource, ok := r.Modules.New(s.State(), function)
	if !ok {
		err := module.Unknown(s.State()+"."+function, r.Modules.Functions())
		result.Comment, result.Hint = diag.At(s.Pos, "%s.%s: %v", s.State(), function, err).Error(), diag.HintOf(err)
		return nil, false
	}
	if name, ok := s.Chunk.Value("name").(string); !ok || name == "" {
		result.Comment = fmt.Sprintf("the name of %s is %s, and a string was expected", s.ID(),
			value.Repr(s.Chunk.Value("name")))
		return nil, false
	}
	warnings, problems := r.decoder.Decode(resource, module.Call{Function: s.Function(), Arguments: s.Chunk, At: s.At,
		Reserved: t.reserved})
	for _, w := range append(warnings, s.Slips()...) {
		result.Warnings = append(result.Warnings, w.Error())
	}
	if err := problems.Err(); err != nil {
		result.Comment, result.Hint = err.Error(), problems[0].Hint
		return nil, false
	}
	if v, ok := resource.(module.Validated); ok {
		if err := v.Valid(); err != nil {
			result.Comment, result.Hint = err.Error(), diag.HintOf(err)
			return nil, false
		}
	}
	if !t.watching {
		return resource, true
	}
	watcher, ok := resource.(module.Watcher)
	if !ok {
		result.Comment = fmt.Sprintf("%s has no watch action", s.Function())
		return nil, false
	}
	return watcher.Watched(), true
}

// reserved returns the value of a reserved argument, which describes the rest of the run: __required__ has the chunks
// of the steps that must run before this one, __changed__ the watched steps that changed something. In a dry run,
// __coming__ has the chunks of this step and of later steps of its kind, and __planned__ the changes of earlier steps
// to accounts.
func (t try) reserved(name string) any {
	switch name {
	case "__changed__":
		return value.Strings(t.changed...)
	case "__required__":
		return required(t.step)
	case "__coming__":
		if t.predicts {
			return alikeFrom(t.steps, t.step)
		}
	case "__planned__":
		return value.NewList(t.planned...)
	}
	return nil
}

// alikeFrom returns the chunks of a step and of later steps of the same state.
func alikeFrom(steps []*compile.Step, s *compile.Step) *value.List {
	chunks := value.NewList(s.Chunk)
	at := slices.Index(steps, s)
	for _, later := range steps[at+1:] {
		if later.State() == s.State() {
			chunks.Append(later.Chunk)
		}
	}
	return chunks
}

func required(s *compile.Step) *value.List {
	chunks := value.NewList()
	for _, q := range s.Requisites {
		if !waits(q.Kind) {
			continue
		}
		for _, t := range q.Targets {
			for _, step := range t.Steps {
				chunks.Append(step.Chunk)
			}
		}
	}
	return chunks
}

// look determines the changes that the step has to make.
func (t try) look(ctx context.Context, resource module.Resource, h *host.Host) (diff module.Diff, err error) {
	defer caught(&err)
	if rehearser, ok := resource.(module.Rehearser); ok && t.dry {
		return rehearser.Rehearse(ctx, h)
	}
	if !t.dry {
		ctx = host.Deciding(ctx)
	}
	return resource.Check(ctx, h)
}

// prepared reports whether, in a dry run, one of the steps that must run before s would or may change something.
func (w *walk) prepared(s *compile.Step) bool {
	if !w.runner.Test {
		return false
	}
	for _, q := range s.Requisites {
		if !waits(q.Kind) {
			continue
		}
		for _, t := range q.Targets {
			for _, step := range t.Steps {
				if r := w.running.Get(step.Tag()); r != nil && r.Outcome == Pending {
					return true
				}
			}
		}
	}
	return false
}

// waits reports whether the targets of a kind of requisite must run before the step, regardless of their results.
func waits(kind string) bool {
	return strings.HasPrefix(kind, "require") || strings.HasPrefix(kind, "watch") || strings.HasPrefix(kind, "onchanges")
}

func orEmpty(maps ...*value.Map) *value.Map {
	for _, m := range maps {
		if m != nil {
			return m
		}
	}
	return value.NewMap()
}
