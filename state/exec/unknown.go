package exec

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// conditional returns the result of a step of a dry run, given the result r of its check, if only a real run can tell
// whether its requisites let it run or act on a watch. It marks a change as unknown, and discards a failure.
func (w *walk) conditional(ctx context.Context, s *compile.Step, r *Result) *Result {
	if r.Outcome == Succeeded && r.Changes.Len() == 0 && !r.SkipWatch && w.watches(s) {
		if acts := w.watch(ctx, s); acts.Outcome == Pending {
			acts.Step = s
			r = acts
		}
	}
	switch r.Outcome {
	case Pending:
		r.Unknown = true
		r.Comment = fmt.Sprintf("unknown, because %s: %s", w.conditionOf(s), r.Comment)
	case Failed:
		r.postpone()
	}
	w.runner.redact(r)
	return r
}

// watches reports whether a step watches another one, and has a watch action.
func (w *walk) watches(s *compile.Step) bool {
	if !slices.ContainsFunc(s.Requisites, func(q compile.Requisite) bool { return strings.HasPrefix(q.Kind, "watch") }) {
		return false
	}
	resource, ok := w.runner.Modules.New(s.State(), s.Fun())
	_, acts := resource.(module.Watcher)
	return ok && acts
}

// conditionOf returns the reason why the result of a step is unknown, and names the step that it depends on.
func (w *walk) conditionOf(s *compile.Step) string {
	for _, q := range s.Requisites {
		for _, t := range q.Targets {
			for _, target := range t.Steps {
				r := w.running.Get(target.Tag())
				switch {
				case r == nil || r.Outcome != Pending:
				case strings.HasPrefix(q.Kind, "onfail"):
					return fmt.Sprintf("it runs only if %s fails", spoken(target))
				case r.isUnknown() && (strings.HasPrefix(q.Kind, "watch") || strings.HasPrefix(q.Kind, "onchanges")):
					return fmt.Sprintf("it runs only if %s changes something", spoken(target))
				}
			}
		}
	}
	return "the states that it listens to may change nothing"
}

// discardGuard discards the result of a guard of a step in a dry run if an earlier step of the run may change it.
func (t try) discardGuard(held bool, result *Result) {
	if !t.predicts || result.Skipped != "" || result.Outcome == Failed {
		return
	}
	guard, step := t.guardTouched()
	switch {
	case step != nil:
	case held && t.prepared && !strings.HasPrefix(result.Comment, "creates"):
		guard, step = "its guard", t.awaited()
	}
	if step == nil || !held && result.Outcome != Pending {
		return
	}
	reason := result.Comment
	result.Outcome, result.Unknown, result.SkipWatch = Pending, true, false
	result.Comment = fmt.Sprintf("unknown, because %s, which runs first, may change the result of %s; on the host as "+
		"it is now: %s",
		spoken(step), guard, reason)
}

// awaited returns a step that this one requires and that would or may change something, or nil if there is none.
func (t try) awaited() *compile.Step {
	for _, q := range t.step.Requisites {
		for _, target := range q.Targets {
			for _, s := range target.Steps {
				if waits(q.Kind) && slices.Contains(t.predicted, s) {
					return s
				}
			}
		}
	}
	return nil
}

// guardTouched returns the first guard that names an object of an earlier step which would or may change something,
// and the last such step.
func (t try) guardTouched() (guard string, step *compile.Step) {
	for _, key := range []string{"onlyif", "unless", "creates"} {
		v, ok := t.step.Chunk.Get(key)
		if !ok {
			continue
		}
		text := words(value.Repr(v), directoryOf(t.step))
		for _, s := range slices.Backward(t.predicted) {
			if mentions(text, s) {
				return key, s
			}
		}
	}
	return "", nil
}
