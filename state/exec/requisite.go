package exec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/compile"
)

// status is the result of evaluating the requisites of a step.
type status int

const (
	met       status = iota
	unmet            // a requisite has to run first
	failed           // a requisite failed
	changed          // a watched step changed
	quiet            // prereq, and no target would change anything
	noFailure        // onfail, and no target failed
	noChange         // onchanges, and no target changed
)

// signs holds the findings about the targets of one requisite, or of all requisites of a step. Several can be true at
// once.
type signs struct {
	met, unmet, failed, changed, premet, quiet, noFailure, noChange, someChange bool

	unknown bool // in a dry run: only a real run can tell whether a target changes something or fails
}

// status evaluates all requisites of a step. A requisite that names no step, or one that has not run yet, is unmet.
func (w *walk) status(s *compile.Step) status {
	if len(s.Requisites) == 0 {
		return met
	}
	var all signs
	for _, q := range s.Requisites {
		if q.Kind == "prerequired" && w.flag(s).prereq {
			continue
		}
		for _, t := range q.Targets {
			if len(t.Steps) == 0 {
				return unmet
			}
		}
		all.add(w.signsOf(q))
	}
	w.flag(s).unknown = all.unknown && !all.someChange && !all.changed
	return all.status()
}

// signsOf evaluates the results of the targets of one requisite.
func (w *walk) signsOf(q compile.Requisite) signs {
	var g signs
	for _, t := range q.Targets {
		for _, s := range t.Steps {
			r := w.running.Get(s.Tag())
			if q.Kind == "prereq" {
				r = w.pre[s.Tag()]
			}
			w.wait(r)
			g.look(q.Kind, r)
		}
	}
	g.combine(q.Kind)
	return g
}

// look adds the findings about one target, given its result, which is nil if the target has not run.
func (g *signs) look(kind string, r *Result) {
	onfail, watch := strings.HasPrefix(kind, "onfail"), strings.HasPrefix(kind, "watch")
	switch {
	case r == nil:
		g.unmet = true
	case onfail && r.Outcome == Succeeded:
		g.noFailure = true
	case !onfail && r.Outcome == Failed:
		g.failed = true
	case strings.HasPrefix(kind, "onchanges"):
		g.unknown = g.unknown || r.isUnknown()
		g.noChange = g.noChange || !r.isUnknown() && !r.wouldChange()
		g.someChange = g.someChange || r.wouldChange()
	case watch && r.wouldChange():
		g.changed = true
	case onfail && r.Outcome == Pending, watch && r.isUnknown():
		g.unknown = true
		g.met = g.met || !r.NotRun
	case kind == "prereq" && r.Outcome == Pending:
		g.premet = true
		g.met = g.met || !r.NotRun
	case strings.HasPrefix(kind, "prereq") && r.Outcome != Pending:
		g.quiet = g.quiet || kind == "prereq"
	default:
		g.met = g.met || !r.NotRun
	}
}

// combine combines the findings about the targets of an _any, _all or onfail requisite. For _any and onfail, one target
// that meets the condition is enough. For onfail_all, one target that did not fail is enough to keep the step from
// running.
func (g *signs) combine(kind string) {
	if strings.HasSuffix(kind, "_any") || kind == "onfail" {
		if g.met || g.changed || g.someChange {
			g.failed = false
		}
		if g.someChange {
			g.noChange = false
		}
		if g.met {
			g.noFailure = false
		}
	}
	if strings.HasSuffix(kind, "_all") && g.noFailure {
		g.met = false
	}
}

func (g *signs) add(h signs) {
	g.met = g.met || h.met
	g.unmet = g.unmet || h.unmet
	g.failed = g.failed || h.failed
	g.changed = g.changed || h.changed
	g.premet = g.premet || h.premet
	g.quiet = g.quiet || h.quiet
	g.noFailure = g.noFailure || h.noFailure
	g.noChange = g.noChange || h.noChange
	g.someChange = g.someChange || h.someChange
	g.unknown = g.unknown || h.unknown
}

func (g *signs) status() status {
	switch {
	case g.unmet:
		return unmet
	case g.failed:
		return failed
	case g.quiet && g.premet:
		return met
	case g.quiet:
		return quiet
	case g.noFailure && !g.someChange:
		return noFailure
	case g.noChange && !g.someChange && !g.unknown:
		return noChange
	case g.changed:
		return changed
	case g.noFailure:
		return noFailure
	}
	return met
}

// changedBy lists the watched steps that changed, as "state: ID".
func (w *walk) changedBy(s *compile.Step) []string {
	var list []string
	for _, q := range s.Requisites {
		for _, t := range q.Targets {
			for _, target := range t.Steps {
				if r := w.running.Get(target.Tag()); q.Kind == "watch" && r != nil && r.wouldChange() {
					list = append(list, target.State()+": "+target.ID())
				}
			}
		}
	}
	return list
}

// open returns the steps that the requisites of a step name, except those of onfail_all, and the items that name no
// step. It marks the targets of prereq and prerequired.
func (w *walk) open(s *compile.Step) (steps []*compile.Step, lost []lostTarget) {
	for _, q := range s.Requisites {
		if q.Kind == "onfail_all" || q.Kind == "prerequired" && w.flag(s).prereq {
			continue
		}
		for _, t := range q.Targets {
			if len(t.Steps) == 0 {
				lost = append(lost, lostTarget{kind: q.Kind, Target: t})
			}
			for _, target := range t.Steps {
				w.mark(q.Kind, target)
				steps = append(steps, target)
			}
		}
	}
	return steps, lost
}

func (w *walk) mark(kind string, target *compile.Step) {
	switch kind {
	case "prereq":
		w.flag(target).prereq = true
	case "prerequired":
		w.flag(target).prerequired = true
	}
}

// lostTarget is an item of a requisite that names no step.
type lostTarget struct {
	kind string
	compile.Target
}

// missing describes missing requisites: the comment has their names and positions, the hint similar names.
func missing(lost []lostTarget) (comment, hint string) {
	names := make([]string, len(lost))
	for i, t := range lost {
		names[i] = t.kind + ": " + t.String()
		if t.Lost == nil {
			continue
		}
		if place := t.Lost.Pos.String(); place != "" {
			names[i] += " (" + place + ")"
		}
		if hint == "" {
			hint = t.Lost.Hint
		}
	}
	return "these requisites are not in this run: " + strings.Join(names, ", "), hint
}

// blame returns a comment that lists the requisites that failed, each as its SLS and ID.
func (w *walk) blame(s *compile.Step) string {
	var names []string
	for _, r := range w.failedOf(s) {
		if name := r.Step.SLS() + "." + r.Step.ID(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return fmt.Sprintf("a requisite failed: %s", strings.Join(names, ", "))
}

// failedOf returns the results of the requisites of a step that failed.
func (w *walk) failedOf(s *compile.Step) (some []*Result) {
	for _, q := range s.Requisites {
		for _, t := range q.Targets {
			for _, target := range t.Steps {
				r := w.pre[target.Tag()]
				if r == nil {
					r = w.running.Get(target.Tag())
				}
				if r != nil && r.Outcome == Failed {
					some = append(some, r)
				}
			}
		}
	}
	return some
}

// afterMayFail reports whether all requisites of a step that failed may fail.
func (w *walk) afterMayFail(s *compile.Step) bool {
	return !slices.ContainsFunc(w.failedOf(s), func(r *Result) bool { return !r.MayFail() })
}

// remedies marks the failures that are remedied. A failure is remedied if, of the steps with `onfail_stop: False` that
// name it in onfail, at least one succeeded and none failed.
func (w *walk) remedies(steps []*compile.Step) {
	outcomes := map[*Result][]Outcome{}
	for _, s := range steps {
		remedy := w.running.Get(s.Tag())
		if remedy == nil || s.Chunk.Value("onfail_stop") != false {
			continue
		}
		for _, target := range named(s, "onfail") {
			if r := w.running.Get(target.Tag()); r != nil && r.Outcome == Failed {
				outcomes[r] = append(outcomes[r], remedy.Outcome)
			}
		}
	}
	for r, of := range outcomes {
		r.Remedied = slices.Contains(of, Succeeded) && !slices.Contains(of, Failed)
	}
}

// named returns the steps that requisites of a kind name.
func named(s *compile.Step, kind string) (steps []*compile.Step) {
	for _, q := range s.Requisites {
		if q.Kind != kind {
			continue
		}
		for _, t := range q.Targets {
			steps = append(steps, t.Steps...)
		}
	}
	return steps
}
