// Package report records what a run did and tells it to whoever wants to know.
//
// A run makes one stream of events. A Recorder keeps what belongs into the report, and hands every
// event on to its sinks: the terminal, the journal, JSON. None of them decides anything; what a
// run says is the same wherever it is read. The report is kept on the host as one JSON file per
// run.
package report

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/health"
	"github.com/corpus-agent/corpus-agent/agent/hook"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/service"
	"github.com/corpus-agent/corpus-agent/agent/undo"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Outcome is how a run ended, in the words people read.
type Outcome string

// The outcomes of a run.
const (
	Converged   Outcome = "converged"
	Failed      Outcome = "failed"
	RolledBack  Outcome = "rolled back"
	Stuck       Outcome = "rollback failed"
	Interrupted Outcome = "interrupted"
	Refused     Outcome = "refused" // a rollback that changed nothing, since it cannot be done
)

// Report is the record of a run.
type Report struct {
	ID string `json:"id"`
	// Sequence counts the runs of a host, from 1. It orders reports, since clocks are set back. 0 is a
	// report of an agent that did not count.
	Sequence int64     `json:"sequence,omitempty"`
	Command  string    `json:"command"` // deploy, converge or rollback
	Test     bool      `json:"test,omitempty"`
	Host     string    `json:"host"`
	Service  string    `json:"service,omitempty"`
	Instance string    `json:"instance,omitempty"`
	Started  time.Time `json:"started"`
	Ended    time.Time `json:"ended,omitzero"`
	Outcome  Outcome   `json:"outcome,omitempty"`
	Exit     int       `json:"exit_code"`

	Agent string `json:"agent,omitempty"`      // version of the program
	Form  int    `json:"reads_form,omitempty"` // newest form of projects' metadata that it reads, see trust.NewestForm

	// OtherRoot says that the run worked below another root (--root) and not on the running system.
	OtherRoot bool `json:"other_root,omitempty"`

	Channels []artifact.Ref `json:"channels,omitempty"` // those that the host follows, as of its last look at the store

	From *ledger.Pair `json:"from,omitempty"` // what ran before
	To   *ledger.Pair `json:"to,omitempty"`   // what was to run
	Left *ledger.Pair `json:"left,omitempty"` // what the host was left with
	// BaseAlone is what the host was left with where nothing of its service could be deployed yet.
	BaseAlone *ledger.Pair `json:"base_alone,omitempty"`

	// Withheld is what the channels name while the host keeps what it has: it is held, a release is
	// quarantined, or a retry is not due yet.
	Withheld *ledger.Pair `json:"withheld,omitempty"`
	Fault    *Fault       `json:"fault,omitempty"` // why a deploy failed

	// Proven is the run that last asked the units and probes of Left, which all passed: this run or an
	// earlier one. It is nil where that is not known.
	Proven *ledger.Proven `json:"proven,omitempty"`
	// Proves is true: this agent sets Proven where there is a proof. Reports of older agents do not have it.
	Proves bool `json:"proves,omitempty"`
	// Unserved says which units do not run Left, or ended since Proven, in a run that deployed nothing; also where states
	// started them again.
	Unserved []string `json:"unserved,omitempty"`
	// Quarantined are the releases that this host does not deploy.
	Quarantined []Quarantined `json:"quarantined,omitempty"`
	// Expiring are signatures of which less than a third of the lifetime is left, the first to expire first.
	Expiring []trust.Expiry `json:"expiring,omitempty"`
	// Expires is until when all signatures that the host relies on are good; nil where it has seen none.
	Expires []trust.Expiry `json:"expires,omitempty"`
	// Leaves is what a rollback by hand goes back from.
	Leaves *ledger.Pair `json:"leaves,omitempty"`

	// Remembered is what the ledger knows of the host itself, to restore a lost ledger from. It does not
	// leave the host.
	Remembered *ledger.Host `json:"remembered,omitempty"`

	Stages []Stage                  `json:"stages"`
	Hooks  map[string][]hook.Result `json:"hooks,omitempty"` // by stage
	Units  []service.Result         `json:"units,omitempty"` // what was done about the units of the releases
	Health []health.Result          `json:"health,omitempty"`
	Top    *Top                     `json:"top,omitempty"` // which top files decided about states; nil where none did
	States Counts                   `json:"states"`
	Steps  []Step                   `json:"steps"` // those that did something, failed, or were skipped
	Notes  []string                 `json:"notes,omitempty"`
	Order  []Told                   `json:"order,omitempty"`  // in which order all of these happened
	Undo   *undo.Summary            `json:"undo,omitempty"`   // what was taken back
	Output string                   `json:"output,omitempty"` // of an engine that is a program

	Error string `json:"error,omitempty"`
	Hint  string `json:"hint,omitempty"`
}

// Top says which top files decided which states run.
type Top struct {
	Rules  []string `json:"rules"`            // as the host calls them, in the order in which they count
	Hidden []string `json:"hidden,omitempty"` // those that did not count, since an earlier root has one
}

// String says so in a sentence.
func (t Top) String() string {
	text := strings.Join(t.Rules, ", then ") + " decided which states run"
	if len(t.Hidden) > 0 {
		text += "; " + strings.Join(t.Hidden, ", ") + " did not count"
	}
	return text
}

// Told is an event of a run: where in the report it stands.
type Told struct {
	What  string `json:"what"`            // ToldStage, ToldHook ...
	Stage string `json:"stage,omitempty"` // the name of the stage, also of a hook
	At    int    `json:"at"`              // the index in Steps, Units, Health, Notes, or Hooks of the stage
}

// What an event is.
const (
	ToldStage = "stage"
	ToldStep  = "step"
	ToldHook  = "hook"
	ToldUnit  = "unit"
	ToldProbe = "probe"
	ToldNote  = "note"
)

// Quarantined is a release that a host does not deploy, and why.
type Quarantined struct {
	Release artifact.Release `json:"release"`
	Reason  string           `json:"reason"`
	Run     string           `json:"run"` // that quarantined it
}

// FaultOf is what is to blame for a deploy that failed.
type FaultOf string

// What may be to blame.
const (
	FaultOfRelease      FaultOf = "release"      // it is quarantined
	FaultOfHost         FaultOf = "host"         // the deploy is retried at growing intervals
	FaultOfInterruption FaultOf = "interruption" // the next run takes the deploy up again
)

// Fault is why a deploy failed.
type Fault struct {
	Of      FaultOf           `json:"of"`
	Release *artifact.Release `json:"release,omitempty"` // that was quarantined
	Retry   *time.Time        `json:"retry,omitempty"`   // of FaultOfHost: not before
}

// String is the fault in a few words; "" for none.
func (f *Fault) String() string {
	switch {
	case f == nil:
		return ""
	case f.Of == FaultOfHost:
		return "the host failed"
	case f.Of == FaultOfRelease && f.Release != nil:
		return f.Release.String() + " was quarantined"
	}
	return ""
}

// Duration is how long the run took.
func (r *Report) Duration() time.Duration { return r.Ended.Sub(r.Started) }

// FirstFailure is the first state that failed, or nil.
func (r *Report) FirstFailure() *Step {
	for i := range r.Steps {
		if r.Steps[i].Result == StepFailed {
			return &r.Steps[i]
		}
	}
	return nil
}

// About is the pair that a run's outcome is about: what converged or was gone back to, and else what
// was tried. It is nil where no pair was known.
func (r *Report) About() *ledger.Pair {
	if r.Left != nil && !r.Test && (r.Outcome == Converged || r.Outcome == RolledBack) {
		return r.Left
	}
	return cmp.Or(r.To, r.BaseAlone)
}

// Stage is one part of a run.
type Stage struct {
	Name     string        `json:"name"`
	Started  time.Time     `json:"started"`
	Duration time.Duration `json:"duration_ns"`
	Error    string        `json:"error,omitempty"`
}

// Counts sums up the states of a run.
type Counts struct {
	Total   int `json:"total"`
	Changed int `json:"changed"`
	Failed  int `json:"failed"`
	Skipped int `json:"skipped"`          // would have left the root
	Pending int `json:"pending"`          // a dry run: would change
	Always  int `json:"always,omitempty"` // of those that changed or would: act at every run, so are no drift
}

// Add counts one step.
func (c *Counts) Add(s Step) {
	c.Total++
	switch {
	case s.Result == StepFailed:
		c.Failed++
	case s.Result == StepSkipped:
		c.Skipped++
	case s.Result == StepPending:
		c.Pending++
	case s.Changes.Len() > 0:
		c.Changed++
	}
	if s.Always {
		c.Always++
	}
}

// Effective is how many states changed what was not as declared: those that act at every run changed something too, and say
// nothing of how the host was.
func (c Counts) Effective() int { return max(0, c.Changed-c.Always) }

// String is the counts in a line.
func (c Counts) String() string {
	text := fmt.Sprintf("%s, %d changed", plural(c.Total, "state"), c.Effective())
	if c.Always > 0 {
		text += fmt.Sprintf(", %d always", c.Always)
	}
	return text + fmt.Sprintf(", %d failed", c.Failed)
}

// How a step ended.
const (
	StepOK      = "ok"
	StepFailed  = "failed"
	StepPending = "would change"
	StepSkipped = "skipped"
	StepNotRun  = "not run"
)

// Step is what became of one state.
type Step struct {
	ID       string        `json:"id"`
	Function string        `json:"function"`
	Name     string        `json:"name"`
	SLS      string        `json:"sls"`
	Result   string        `json:"result"`
	Changes  *value.Map    `json:"changes"`           // with StepPending what a run would report here
	Unknown  bool          `json:"unknown,omitempty"` // with StepPending: only acting will tell
	Always   bool          `json:"always,omitempty"`  // it acts at every run: what it changes is no drift
	Comment  string        `json:"comment,omitempty"`
	Hint     string        `json:"hint,omitempty"`
	Warnings []string      `json:"warnings,omitempty"`
	Duration time.Duration `json:"duration_ns"`
}

// StepOf tells an engine's result in the report's words.
func StepOf(r *exec.Result) Step {
	s := Step{
		ID: r.ID(), Function: r.Step.Function(), Name: r.Name(), SLS: r.Step.SLS(), Result: StepOK,
		Changes: r.Changes, Always: r.Always, Comment: r.Comment, Hint: r.Hint, Warnings: r.Warnings, Duration: r.Duration,
	}
	switch {
	case r.Skipped != "":
		s.Result = StepSkipped
	case r.Outcome == exec.Failed:
		s.Result = StepFailed
	case r.Outcome == exec.Pending:
		s.Result, s.Unknown = StepPending, r.Unknown
		if r.Predicted != nil { // other engines tell less
			s.Changes = r.Predicted
		}
	case r.NotRun:
		s.Result = StepNotRun
	}
	return s
}

// Quiet reports whether there is nothing to tell about a step.
func (s Step) Quiet() bool {
	return (s.Result == StepOK || s.Result == StepNotRun) && s.Changes.Len() == 0 && len(s.Warnings) == 0
}

// StageNames lists the stages that ran, in their order.
func (r *Report) StageNames() []string {
	var names []string
	for _, s := range r.Stages {
		names = append(names, s.Name)
	}
	return names
}
