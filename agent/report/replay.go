package report

import (
	"maps"
	"slices"
)

// Replay tells a run that is over to a sink, in the order in which it happened, as far as the report remembers it:
// steps that had nothing to say are only in its counts. A report of an agent that did not keep the order is told by
// kinds.
func Replay(r *Report, s Sink) {
	s.Begin(r)
	order := r.Order
	if len(order) == 0 {
		order = byKind(r)
	}
	for _, told := range order {
		replay(r, told, s)
	}
	for i := noted(order); i < len(r.Notes); i++ { // that were taken down when the run was over
		s.Note(r.Notes[i])
	}
	if r.Top != nil {
		s.Note(r.Top.String())
	}
	s.End(r)
}

// replay tells one event. A report that was written by another program may name one that it does not have.
func replay(r *Report, told Told, s Sink) {
	within := func(n int) bool { return told.At >= 0 && told.At < n }
	switch hooks := r.Hooks[told.Stage]; {
	case told.What == ToldStage:
		s.Stage(told.Stage, "")
	case told.What == ToldStep && within(len(r.Steps)):
		s.Step(r.Steps[told.At])
	case told.What == ToldHook && within(len(hooks)):
		s.Hook(told.Stage, hooks[told.At])
	case told.What == ToldUnit && within(len(r.Units)):
		s.Hook(UnitsStage, unitTold(r.Units[told.At]))
	case told.What == ToldProbe && within(len(r.Health)):
		s.Hook(HealthStage, probeTold(r.Health[told.At]))
	case told.What == ToldNote && within(len(r.Notes)):
		s.Note(r.Notes[told.At])
	}
}

// noted is how many notes an order has.
func noted(order []Told) int {
	n := 0
	for _, told := range order {
		if told.What == ToldNote {
			n++
		}
	}
	return n
}

// byKind is the order of a report that kept none.
func byKind(r *Report) []Told {
	var order []Told
	for _, stage := range r.Stages {
		order = append(order, Told{What: ToldStage, Stage: stage.Name})
	}
	add := func(what, stage string, n int) {
		for i := range n {
			order = append(order, Told{What: what, Stage: stage, At: i})
		}
	}
	add(ToldStep, "", len(r.Steps))
	for _, stage := range slices.Sorted(maps.Keys(r.Hooks)) {
		add(ToldHook, stage, len(r.Hooks[stage]))
	}
	add(ToldUnit, "", len(r.Units))
	add(ToldProbe, "", len(r.Health))
	add(ToldNote, "", len(r.Notes))
	return order
}
