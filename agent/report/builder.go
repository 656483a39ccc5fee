package report

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/health"
	"github.com/corpus-agent/corpus-agent/agent/hook"
	"github.com/corpus-agent/corpus-agent/agent/service"
	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/redact"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Sink receives the events of a run. Calls do not overlap.
type Sink interface {
	// Begin is called at the start of the run.
	Begin(r *Report)
	// Stage is called when a part of the run starts. detail is its subject, such as a release.
	Stage(name, detail string)
	// Fetching reports how much of an artifact has arrived. It is called often.
	Fetching(artifact string, done, total int64)
	// Step reports a finished state, also one that changed nothing.
	Step(s Step)
	// Hook reports a hook, a unit at the stage UnitsStage, or a probe at the stage HealthStage.
	Hook(stage string, r hook.Result)
	// Note reports a sentence that is not a failure.
	Note(text string)
	// End is called with the complete report.
	End(r *Report)
}

// Builder builds the report of a run. It is safe for concurrent use.
//
// The output of programs and states passes through Builder.Show on its way into the report and to the sinks, so
// neither contains secrets that the redactor knows, credentials in URLs, or control characters.
type Builder struct {
	mu       sync.Mutex
	report   *Report
	redactor *redact.Redactor
	sinks    []Sink
}

// Record starts a report. Secrets may be added to the redactor during the run; a nil redactor has none.
func Record(r *Report, redactor *redact.Redactor, sinks ...Sink) *Builder {
	r.Stages, r.Steps = []Stage{}, []Step{}
	rec := &Builder{report: r, redactor: redactor, sinks: sinks}
	rec.each(func(s Sink) { s.Begin(r) })
	return rec
}

// Show removes secrets, credentials in URLs and control characters from a text.
func (r *Builder) Show(text string) string {
	return redact.Controls(redact.URLs(r.redactor.Text(text)))
}

// DoesOrWould returns does, or in a dry run would: the wording of a note for a dry run, which changes nothing.
func (r *Builder) DoesOrWould(does, would string) string {
	if r.report.Test {
		return would
	}
	return does
}

func (r *Builder) each(call func(Sink)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.sinks {
		call(s)
	}
}

// update changes the report under the lock that guards it.
func (r *Builder) update(change func(*Report)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(r.report)
}

// Stage runs one part of the run and records how long it took and whether it failed.
func (r *Builder) Stage(name, detail string, part func() error) error {
	started := time.Now()
	r.update(func(rep *Report) { rep.Order = append(rep.Order, Event{What: EventStage, Stage: name}) })
	r.each(func(s Sink) { s.Stage(name, r.Show(detail)) })
	err := part()
	stage := Stage{Name: name, Started: started.UTC(), Duration: time.Since(started)}
	if err != nil {
		stage.Error = r.Show(exit.Text(err))
	}
	r.update(func(rep *Report) { rep.Stages = append(rep.Stages, stage) })
	return err
}

// Note records a sentence that is not a failure.
func (r *Builder) Note(format string, args ...any) {
	text := r.Show(fmt.Sprintf(format, args...))
	r.update(func(rep *Report) {
		rep.Order = append(rep.Order, Event{What: EventNote, At: len(rep.Notes)})
		rep.Notes = append(rep.Notes, text)
	})
	r.each(func(s Sink) { s.Note(text) })
}

// Top records which top files decided which states run.
func (r *Builder) Top(top Top) { r.update(func(rep *Report) { rep.Top = &top }) }

// Fetching reports how much of an artifact has arrived.
func (r *Builder) Fetching(artifact string, done, total int64) {
	r.each(func(s Sink) { s.Fetching(artifact, done, total) })
}

// Hooks records the hooks of a stage.
func (r *Builder) Hooks(stage string, results []hook.Result) {
	if len(results) == 0 {
		return
	}
	results = slices.Clone(results)
	redact.Each(&results, r.Show)
	r.update(func(rep *Report) {
		if rep.Hooks == nil {
			rep.Hooks = map[string][]hook.Result{}
		}
		for _, result := range results {
			rep.Order = append(rep.Order, Event{What: EventHook, Stage: stage, At: len(rep.Hooks[stage])})
			rep.Hooks[stage] = append(rep.Hooks[stage], result)
		}
	})
	for _, result := range results {
		r.each(func(s Sink) { s.Hook(stage, result) })
	}
}

// UnitsStage is the stage at which units are reported.
const UnitsStage = "units"

// Unit records the result of an action on a unit.
func (r *Builder) Unit(result service.Result) {
	redact.Each(&result, r.Show) // an error may contain journal lines of the unit
	r.update(func(rep *Report) {
		rep.Order = append(rep.Order, Event{What: EventUnit, At: len(rep.Units)})
		rep.Units = append(rep.Units, result)
	})
	r.each(func(s Sink) { s.Hook(UnitsStage, unitResult(result)) })
}

// unitResult converts the result of a unit for Sink.Hook.
func unitResult(result service.Result) hook.Result {
	text := result.Action + " " + result.Unit
	if result.Why != "" {
		text += ": " + result.Why
	}
	return hook.Result{Name: text, Duration: result.Duration, Error: result.Error}
}

// HealthStage is the stage at which probes are reported.
const HealthStage = "health"

// Probes records the results of a release's health probes.
func (r *Builder) Probes(results []health.Result) {
	results = slices.Clone(results)
	redact.Each(&results, r.Show)
	for _, result := range results {
		r.update(func(rep *Report) {
			rep.Order = append(rep.Order, Event{What: EventProbe, At: len(rep.Health)})
			rep.Health = append(rep.Health, result)
		})
		r.each(func(s Sink) { s.Hook(HealthStage, probeResult(result)) })
	}
}

// probeResult converts the result of a probe for Sink.Hook.
func probeResult(result health.Result) hook.Result {
	shown := hook.Result{Name: result.Probe, Duration: result.Duration, Error: result.Error}
	if result.Test != "" {
		shown.Name += " runs the release: " + result.Test
	}
	if result.Answered != "" {
		shown.Name += " answered by " + result.Answered
	}
	return shown
}

// StepStarted implements exec.Observer. States are many and short, so only their results are reported.
func (r *Builder) StepStarted(*compile.Step) {}

// StepDone implements exec.Observer.
func (r *Builder) StepDone(result *exec.Result) {
	s := StepOf(result)
	s.Changes, s.Warnings = r.redacted(s.Changes), slices.Clone(s.Warnings)
	redact.Each(&s, r.Show)
	r.update(func(rep *Report) {
		rep.States.Add(s)
		if !s.Quiet() {
			rep.Order = append(rep.Order, Event{What: EventStep, At: len(rep.Steps)})
			rep.Steps = append(rep.Steps, s)
		}
	})
	r.each(func(sink Sink) { sink.Step(s) })
}

// redacted returns a step's changes without numbers that are secrets; Show redacts the strings.
func (r *Builder) redacted(changes *value.Map) *value.Map {
	m, _ := r.redactor.Value(changes).(*value.Map)
	return m
}

// Output records the output of an engine that is an external program.
func (r *Builder) Output(text string) { r.update(func(rep *Report) { rep.Output = r.Show(text) }) }

// Complete records how the run ended. Notes may still follow. The whole report is redacted once more, since parts were
// recorded before their secrets were known, or not by a Builder.
func (r *Builder) Complete(finish func(*Report)) {
	r.update(func(rep *Report) {
		finish(rep)
		redact.Each(rep, r.Show, identifying()...)
	})
}

// identifying lists the fields of a report that are not redacted: programs read them, and their values do not come from
// programs or states.
func identifying() []string {
	return []string{
		"ID", "Command", "Host", "Service", "Instance", "Outcome", "Channels", "From", "To", "Left", "Leaves", "Proven",
	}
}

// End calls End of all sinks.
func (r *Builder) End() { r.each(func(s Sink) { s.End(r.report) }) }
