// Package recording is the journal of one run of the agent: it records what states, hooks and procedures replace, and
// undoes the changes when the run fails.
package recording

import (
	"cmp"
	"slices"
	"sync"

	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/agent/journal"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/redact"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Run is the part of one run of the agent that records changes and undoes them. All exported fields except Over and
// Left must be set.
type Run struct {
	Host   *inspect.Host
	ID     string
	Test   bool // a dry run: nothing is recorded and nothing undone
	Ledger *ledger.Ledger
	Record *report.Builder
	// Over is the pair that ran before the pair to converge, if a rollback has reached that; nil means that of the
	// ledger.
	Over *ledger.Pair
	// Left is the pair whose changes are undone; nil if there is none, or no pair to return to.
	Left *ledger.Pair

	current *undoing // nil while nothing has converged
}

// undoing records what a run replaces while it converges one pair.
type undoing struct {
	*journal.Recorder
	pair ledger.Pair
	host *host.Host
}

// recorder returns the recorder of a pair, and ends that of another pair. The journal is not written before something
// changes.
func (r *Run) recorder(pair ledger.Pair) (*journal.Recorder, error) {
	if r.current != nil && r.current.pair.Same(pair) {
		return r.current.Recorder, nil
	}
	if err := r.Close(); err != nil {
		return nil, err
	}
	over := r.Ledger.Runs()
	if over != nil && over.Same(pair) {
		over = cmp.Or(r.Over, r.Ledger.Previous)
	}
	run := journal.Run{
		ID:   r.ID,
		Pair: pair.Key(),
		Name: pair.String(),
		Now:  r.Host.Time,
		Note: r.Record.Note,
		Skip: []string{r.Host.Layout.Inside(r.Host.Layout.State())},
	}
	if over != nil {
		run.Over = over.Key()
	}
	r.current = &undoing{Recorder: r.Host.Journal().Record(run), pair: pair}
	return r.current.Recorder, nil
}

// Recording returns the host on which states converge a pair: what they replace is recorded.
func (r *Run) Recording(pair ledger.Pair) (*host.Host, error) {
	recorder, err := r.recorder(pair)
	if err != nil {
		return nil, err
	}
	h, err := r.Host.StateHostWith(recorder, r.temporaryBeside(recorder))
	if err == nil {
		recorder.Bind(h)
		r.current.host = h
	}
	return h, err
}

// RecordedHost returns the host of Recording for the pair that converges; nil if nothing has converged.
func (r *Run) RecordedHost() *host.Host {
	if r.current == nil {
		return nil
	}
	return r.current.host
}

// Close ends the recording of the current pair, if there is one.
func (r *Run) Close() error {
	if r.current == nil {
		return nil
	}
	u := r.current
	r.current = nil
	return u.Close()
}

// Synced returns after what was recorded is on disk, where a power failure cannot lose it.
func (r *Run) Synced() error {
	if r.current == nil {
		return nil
	}
	return r.current.Sync()
}

// BeforeProgram records that a program of a release runs, which may change anything. The caller calls ended after the
// program has ended.
func (r *Run) BeforeProgram(what, name string, pair ledger.Pair) (ended func(), err error) {
	if _, err := r.Recording(pair); err != nil {
		return nil, err
	}
	recorder := r.current.Recorder
	return func() {
		if err := recorder.AfterProgram(); err != nil {
			r.Record.Note("%v", err)
		}
	}, recorder.BeforeProgram(what, name)
}

// BeforeEngine records that an external engine converges, whose changes the journal does not see.
func (r *Run) BeforeEngine() error {
	if r.current == nil || r.Host.Config.Engine == "native" || r.Test {
		return nil
	}
	// One record for a pair is enough: the timer would add one on each run.
	last, err := r.Host.Journal().Last()
	if err == nil && last != nil && last.Key().Same(r.current.pair.Key()) &&
		slices.ContainsFunc(last.Live(), func(c *journal.Record) bool { return c.Step == "engine" }) {
		return nil
	}
	return r.current.BeforeProgram("engine", r.Host.Config.Engine)
}

// Observing returns an observer that passes its events to o, and records in the journal which state runs. In a dry run
// it adds notes about files that are too large for the journal.
func (r *Run) Observing(o exec.Observer) exec.Observer {
	if r.Test && r.Host.Config.UndoLimit > 0 {
		if h, err := r.Host.StateHost(); err == nil { // converging reports why there is none
			o = tooLarge{Observer: o, of: r, host: h}
		}
	}
	if r.current == nil || r.Test {
		return o
	}
	return &observer{Observer: o, recorder: r.current.Recorder, note: r.Record.Note, host: r.current.host}
}

type observer struct {
	exec.Observer
	recorder *journal.Recorder
	note     func(string, ...any)
	redactor *redact.Redactor // nil for none
	host     *host.Host

	mu    sync.Mutex // parallel states call ahead
	steps []*compile.Step
	at    map[*compile.Step]int
	next  int // of the steps, the first that has not started
	given int // of the steps, the first that the recorder does not know
}

func (o *observer) Redacting(r *redact.Redactor) {
	o.redactor = r
	o.recorder.Hide(r.Text)
}

func (o *observer) StepStarted(s *compile.Step) {
	if value.Truth(s.Chunk.Value("parallel")) {
		o.recorder.Parallel(o.named(s))
	}
	o.pass(s)
	if shows := s.Chunk.Value("show_changes"); shows != nil && !value.Truth(shows) {
		o.recorder.Private(o.named(s))
	}
	o.recorder.Step(o.named(s))
	o.Observer.StepStarted(s)
}

// named returns the name of a step in the journal. It is redacted, since a later run that shows the journal does not
// know the secrets.
func (o *observer) named(s *compile.Step) string {
	return o.redactor.Text(s.Function() + " " + s.ID())
}

// GuardStarted implements exec.Guarding.
func (o *observer) GuardStarted() { o.noted(o.recorder.GuardStarted()) }

// GuardDone implements exec.Guarding.
func (o *observer) GuardDone() { o.noted(o.recorder.GuardDone()) }

func (o *observer) noted(err error) {
	if err != nil {
		o.note("%v", err)
	}
}

func (o *observer) StepDone(r *exec.Result) {
	if r.Parallel {
		o.recorder.Ended(o.named(r.Step))
	}
	if err := o.recorder.Settle(); err != nil {
		o.note("%v", err)
	}
	o.Observer.StepDone(r)
}

// temporaryBeside returns the function that notes directories with temporary files of states, for later runs to sweep.
// The journal names most of them anyway, so one line that refers to the journal replaces a line for each.
func (r *Run) temporaryBeside(recorder *journal.Recorder) func(dir string) {
	var once sync.Once
	return func(dir string) {
		if !recorder.ChangedIn(r.Host.Layout.Inside(dir)) {
			r.Host.NoteTemporary(dir)
			return
		}
		once.Do(func() { r.Host.NoteTemporary(site.InJournal + r.Host.Journal().Dir) })
	}
}
