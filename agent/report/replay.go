package report

import (
	"maps"
	"slices"
)

// Replay sends the events of a finished run to a sink, in the order in which they happened. Steps that changed nothing
// are not in the report; only its counts include them. If the report has no order, since an older agent wrote it, the
// events come by kind.
func Replay(r *Report, s Sink) {
	s.Begin(r)
	order := r.Order
	if len(order) == 0 {
		order = byKind(r)
	}
	for _, event := range order {
		replay(r, event, s)
	}
	for i := noted(order); i < len(r.Notes); i++ { // recorded after the run, so not in the order
		s.Note(r.Notes[i])
	}
	if r.Top != nil {
		s.Note(r.Top.String())
	}
	s.End(r)
}

// replay sends one event. An event that points at nothing in the report, as another program may have written, is
// skipped.
func replay(r *Report, event Event, s Sink) {
	within := func(n int) bool { return event.At >= 0 && event.At < n }
	switch hooks := r.Hooks[event.Stage]; {
	case event.What == EventStage:
		s.Stage(event.Stage, "")
	case event.What == EventStep && within(len(r.Steps)):
		s.Step(r.Steps[event.At])
	case event.What == EventHook && within(len(hooks)):
		s.Hook(event.Stage, hooks[event.At])
	case event.What == EventUnit && within(len(r.Units)):
		s.Hook(UnitsStage, unitResult(r.Units[event.At]))
	case event.What == EventProbe && within(len(r.Health)):
		s.Hook(HealthStage, probeResult(r.Health[event.At]))
	case event.What == EventNote && within(len(r.Notes)):
		s.Note(r.Notes[event.At])
	}
}

// noted returns the number of notes in an order.
func noted(order []Event) int {
	n := 0
	for _, event := range order {
		if event.What == EventNote {
			n++
		}
	}
	return n
}

// byKind returns an order for a report that has none.
func byKind(r *Report) []Event {
	var order []Event
	for _, stage := range r.Stages {
		order = append(order, Event{What: EventStage, Stage: stage.Name})
	}
	add := func(what, stage string, n int) {
		for i := range n {
			order = append(order, Event{What: what, Stage: stage, At: i})
		}
	}
	add(EventStep, "", len(r.Steps))
	for _, stage := range slices.Sorted(maps.Keys(r.Hooks)) {
		add(EventHook, stage, len(r.Hooks[stage]))
	}
	add(EventUnit, "", len(r.Units))
	add(EventProbe, "", len(r.Health))
	add(EventNote, "", len(r.Notes))
	return order
}
