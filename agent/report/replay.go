package report

import (
	"maps"
	"slices"

	"github.com/corpus-agent/corpus-agent/agent/hook"
)

// Replay tells a run that is over to a sink, as far as the report remembers it: steps that had
// nothing to say are only in its counts.
func Replay(r *Report, s Sink) {
	s.Begin(r)
	for _, stage := range r.Stages {
		s.Stage(stage.Name, "")
	}
	for _, step := range r.Steps {
		s.Step(step)
	}
	for _, stage := range slices.Sorted(maps.Keys(r.Hooks)) {
		for _, result := range r.Hooks[stage] {
			s.Hook(stage, result)
		}
	}
	for _, p := range r.Health {
		s.Hook(HealthStage, hook.Result{Name: p.Probe, Duration: p.Duration, Error: p.Error})
	}
	for _, note := range r.Notes {
		s.Note(note)
	}
	s.End(r)
}
