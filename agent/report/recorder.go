package report

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/health"
	"github.com/corpus-agent/corpus-agent/agent/hook"
	"github.com/corpus-agent/corpus-agent/agent/service"
	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/redact"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Sink is told what happens. Calls come one at a time.
type Sink interface {
	// Begin starts a run; End has the whole report.
	Begin(r *Report)
	// Stage starts a part of the run, detail saying on what.
	Stage(name, detail string)
	// Fetching tells how much of an artifact has arrived. It is called often.
	Fetching(artifact string, done, total int64)
	// Step tells about a state when it is done; one that needs no words is told too.
	Step(s Step)
	// Hook tells about an operator's program, or about a probe at the stage HealthStage.
	Hook(stage string, r hook.Result)
	// Note is a sentence that is no failure.
	Note(text string)
	End(r *Report)
}

// Recorder builds the report of a run. It is safe for concurrent use.
//
// What programs and states say passes through Recorder.Show on its way into the report and to the sinks, so
// neither holds a secret that the redactor knows, credentials in a URL, or control characters.
type Recorder struct {
	mu       sync.Mutex
	report   *Report
	redactor *redact.Redactor
	sinks    []Sink
}

// Record starts a report. The redactor may learn of secrets while the run goes on; nil knows none.
func Record(r *Report, redactor *redact.Redactor, sinks ...Sink) *Recorder {
	r.Stages, r.Steps = []Stage{}, []Step{}
	rec := &Recorder{report: r, redactor: redactor, sinks: sinks}
	rec.each(func(s Sink) { s.Begin(r) })
	return rec
}

// Show returns a text as people may see it: without secrets, credentials in URLs and control characters.
func (r *Recorder) Show(text string) string {
	return redact.Controls(redact.URLs(r.redactor.Text(text)))
}

func (r *Recorder) each(tell func(Sink)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.sinks {
		tell(s)
	}
}

// update changes the report under the lock that guards it.
func (r *Recorder) update(change func(*Report)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(r.report)
}

// Stage runs one part of the run and records how long it took and whether it failed.
func (r *Recorder) Stage(name, detail string, part func() error) error {
	started := time.Now()
	r.update(func(rep *Report) { rep.Order = append(rep.Order, Told{What: ToldStage, Stage: name}) })
	r.each(func(s Sink) { s.Stage(name, r.Show(detail)) })
	err := part()
	stage := Stage{Name: name, Started: started.UTC(), Duration: time.Since(started)}
	if err != nil {
		stage.Error = r.Show(err.Error())
	}
	r.update(func(rep *Report) { rep.Stages = append(rep.Stages, stage) })
	return err
}

// Note records a sentence that is no failure.
func (r *Recorder) Note(format string, args ...any) {
	text := r.Show(fmt.Sprintf(format, args...))
	r.update(func(rep *Report) {
		rep.Order = append(rep.Order, Told{What: ToldNote, At: len(rep.Notes)})
		rep.Notes = append(rep.Notes, text)
	})
	r.each(func(s Sink) { s.Note(text) })
}

// Top records which top files decided which states run.
func (r *Recorder) Top(top Top) { r.update(func(rep *Report) { rep.Top = &top }) }

// Fetching tells how much of an artifact has arrived.
func (r *Recorder) Fetching(artifact string, done, total int64) {
	r.each(func(s Sink) { s.Fetching(artifact, done, total) })
}

// Hooks records the hooks of a stage.
func (r *Recorder) Hooks(stage string, results []hook.Result) {
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
			rep.Order = append(rep.Order, Told{What: ToldHook, Stage: stage, At: len(rep.Hooks[stage])})
			rep.Hooks[stage] = append(rep.Hooks[stage], result)
		}
	})
	for _, result := range results {
		r.each(func(s Sink) { s.Hook(stage, result) })
	}
}

// UnitsStage is the stage at which units are reported.
const UnitsStage = "units"

// Unit records what was done about a unit.
func (r *Recorder) Unit(result service.Result) {
	result.Error = r.Show(result.Error) // it may hold what the unit wrote into the journal
	r.update(func(rep *Report) {
		rep.Order = append(rep.Order, Told{What: ToldUnit, At: len(rep.Units)})
		rep.Units = append(rep.Units, result)
	})
	r.each(func(s Sink) { s.Hook(UnitsStage, unitTold(result)) })
}

// unitTold is what was done about a unit, as sinks are told of it.
func unitTold(result service.Result) hook.Result {
	text := result.Action + " " + result.Unit
	if result.Why != "" {
		text += ": " + result.Why
	}
	return hook.Result{Name: text, Duration: result.Duration, Error: result.Error}
}

// HealthStage is the stage at which probes are told.
const HealthStage = "health"

// Probes records whether a release became healthy.
func (r *Recorder) Probes(results []health.Result) {
	results = slices.Clone(results)
	redact.Each(&results, r.Show)
	for _, result := range results {
		r.update(func(rep *Report) {
			rep.Order = append(rep.Order, Told{What: ToldProbe, At: len(rep.Health)})
			rep.Health = append(rep.Health, result)
		})
		r.each(func(s Sink) { s.Hook(HealthStage, probeTold(result)) })
	}
}

// probeTold is the result of a probe or a unit, as sinks are told of it.
func probeTold(result health.Result) hook.Result {
	told := hook.Result{Name: result.Probe, Duration: result.Duration, Error: result.Error}
	if result.Test != "" {
		told.Name += " runs the release: " + result.Test
	}
	if result.Answered != "" {
		told.Name += " answered by " + result.Answered
	}
	return told
}

// StepStarted is part of exec.Observer. States are many and short: only their end is told.
func (r *Recorder) StepStarted(*compile.Step) {}

// StepDone is part of exec.Observer.
func (r *Recorder) StepDone(result *exec.Result) {
	s := StepOf(result)
	s.Changes, s.Warnings = r.redacted(s.Changes), slices.Clone(s.Warnings)
	redact.Each(&s, r.Show)
	r.update(func(rep *Report) {
		rep.States.Add(s)
		if !s.Quiet() {
			rep.Order = append(rep.Order, Told{What: ToldStep, At: len(rep.Steps)})
			rep.Steps = append(rep.Steps, s)
		}
	})
	r.each(func(sink Sink) { sink.Step(s) })
}

// redacted is a step's changes without the numbers that are secrets; Show takes care of the strings.
func (r *Recorder) redacted(changes *value.Map) *value.Map {
	m, _ := r.redactor.Value(changes).(*value.Map)
	return m
}

// Output records what an engine that is a program printed.
func (r *Recorder) Output(text string) { r.update(func(rep *Report) { rep.Output = r.Show(text) }) }

// Complete writes down how the run ended. Notes may still follow. The whole report is redacted once more: what was
// recorded before its secrets were known, and what no other function of a Recorder recorded.
func (r *Recorder) Complete(finish func(*Report)) {
	r.update(func(rep *Report) {
		finish(rep)
		redact.Each(rep, r.Show, identifying()...)
	})
}

// identifying lists the fields of a report that say what it is about. Programs read them, and no program or state
// writes them.
func identifying() []string {
	return []string{"ID", "Command", "Host", "Service", "Instance", "Outcome", "Channels", "From", "To", "Left", "Leaves", "Proven"}
}

// End tells the sinks that the report is complete.
func (r *Recorder) End() { r.each(func(s Sink) { s.End(r.report) }) }
