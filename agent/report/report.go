// Package report records what a run did and reports it to sinks.
//
// A run is one stream of events. A Builder keeps in the report what belongs there, and passes every event to its
// sinks: the terminal, plain lines, JSON. All sinks get the same events. The report is kept on the host as one JSON
// file per run.
package report

import (
	"cmp"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/health"
	"github.com/corpus-agent/corpus-agent/agent/hook"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/service"
	"github.com/corpus-agent/corpus-agent/agent/undo"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// Outcome is the outcome of a run, in words.
type Outcome string

// The outcomes of a run.
const (
	Converged   Outcome = "converged"
	Failed      Outcome = "failed"
	RolledBack  Outcome = "rolled back"
	Stuck       Outcome = "rollback failed"
	Interrupted Outcome = "interrupted"
	Refused     Outcome = "refused" // a rollback that is impossible, and changed nothing
)

// Report is the record of a run.
type Report struct {
	ID string `json:"id"`
	// Sequence numbers the runs of a host, starting at 1. It orders reports, since clocks can be set back. It is 0 in
	// reports of agents that wrote none.
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
	// Excused is true if the run failed only in states that may fail (may_fail). It deployed what it was to deploy.
	Excused bool `json:"excused,omitempty"`

	Agent string `json:"agent,omitempty"`      // version of the program
	Form  int    `json:"reads_form,omitempty"` // newest form of projects' metadata that it reads; see trust.NewestForm

	// OtherRoot is true if the run worked below another root (--root) and not on the running system.
	OtherRoot bool `json:"other_root,omitempty"`

	Channels []artifact.Ref `json:"channels,omitempty"` // the channels that the host followed when it last read the store

	From *ledger.Pair `json:"from,omitempty"` // the pair deployed before the run
	To   *ledger.Pair `json:"to,omitempty"`   // the pair that the run was to deploy
	// Instead is the pair that converged in place of To, of which nothing was deployed; nil if To was tried.
	Instead *ledger.Pair `json:"instead,omitempty"`
	Left    *ledger.Pair `json:"left,omitempty"` // the pair deployed after the run
	// BaseAlone is the pair deployed after the run while no release of the host's service could be deployed yet.
	BaseAlone *ledger.Pair `json:"base_alone,omitempty"`

	// Withheld is the pair that the channels name while the host keeps the deployed one: the host is held, a release is
	// quarantined, or a retry is not due yet.
	Withheld *ledger.Pair `json:"withheld,omitempty"`
	Fault    *Fault       `json:"fault,omitempty"` // why a deploy failed
	// FailedInBase is true if the converge failed in a state of base.
	FailedInBase bool `json:"failed_in_base,omitempty"`

	// Proven is the run that last checked the units and probes of Left, all of which passed: this run or an
	// earlier one. It is nil if there is no such run.
	Proven *ledger.Proven `json:"proven,omitempty"`
	// Proves is true in reports of agents that set Proven. Older agents write neither.
	Proves bool `json:"proves,omitempty"`
	// Unserved lists the units that do not run Left, or ended since Proven, in a run that deployed nothing; it includes
	// units that states started again.
	Unserved []string `json:"unserved,omitempty"`
	// Quarantined lists the releases that this host does not deploy.
	Quarantined []Quarantined `json:"quarantined,omitempty"`
	// Expiring lists the signatures that have less than a third of their lifetime left, the first to expire first.
	Expiring []trust.Expiry `json:"expiring,omitempty"`
	// Expires lists when each signature that the host relies on expires; nil if it has seen none.
	Expires []trust.Expiry `json:"expires,omitempty"`
	// Leaves is the pair that a manual rollback rolls back from.
	Leaves *ledger.Pair `json:"leaves,omitempty"`

	// Remembered is the host's own part of the ledger, from which a lost ledger is restored. It is not sent to the
	// store.
	Remembered *ledger.Host `json:"remembered,omitempty"`

	Stages []Stage                  `json:"stages"`
	Hooks  map[string][]hook.Result `json:"hooks,omitempty"` // by stage
	Units  []service.Result         `json:"units,omitempty"` // actions on the units of the releases
	Health []health.Result          `json:"health,omitempty"`
	Top    *Top                     `json:"top,omitempty"` // the top files that chose the states; nil if there were none
	States Counts                   `json:"states"`
	Steps  []Step                   `json:"steps"` // states that changed something, failed, or were skipped
	Notes  []string                 `json:"notes,omitempty"`
	Order  []Event                  `json:"order,omitempty"`  // the order in which these events happened
	Undo   *undo.Summary            `json:"undo,omitempty"`   // what the run undid
	Output string                   `json:"output,omitempty"` // output of an engine that is an external program

	Error string `json:"error,omitempty"`
	Hint  string `json:"hint,omitempty"`
	Code  string `json:"code,omitempty"` // of the hint
}

// Top lists the top files that chose which states run.
type Top struct {
	Rules  []string `json:"rules"`            // the files that were used, in order
	Hidden []string `json:"hidden,omitempty"` // the files that were not used, since an earlier root has one
}

// String returns the list as a sentence.
func (t Top) String() string {
	text := strings.Join(t.Rules, ", then ") + " decided which states run"
	if len(t.Hidden) > 0 {
		text += "; " + strings.Join(t.Hidden, ", ") + " did not count"
	}
	return text
}

// Event is an event of a run, as a reference into the report.
type Event struct {
	What  string `json:"what"`            // EventStage, EventHook, ...
	Stage string `json:"stage,omitempty"` // the name of the stage; also set for a hook
	At    int    `json:"at"`              // the index in Steps, Units, Health, Notes, or Hooks[Stage]
}

// The kinds of events.
const (
	EventStage = "stage"
	EventStep  = "step"
	EventHook  = "hook"
	EventUnit  = "unit"
	EventProbe = "probe"
	EventNote  = "note"
)

// Quarantined is a release that a host does not deploy, and the reason.
type Quarantined struct {
	Release artifact.Release `json:"release"`
	Reason  string           `json:"reason"`
	Run     string           `json:"run"` // the run that quarantined it
}

// FaultOf is the cause of a failed deploy.
type FaultOf string

// The causes of a failed deploy.
const (
	FaultOfRelease      FaultOf = "release"      // the release is quarantined
	FaultOfHost         FaultOf = "host"         // the deploy is retried at growing intervals
	FaultOfInterruption FaultOf = "interruption" // the next run continues the deploy
)

// Fault is the reason why a deploy failed.
type Fault struct {
	Of      FaultOf           `json:"of"`
	Release *artifact.Release `json:"release,omitempty"` // the release that was quarantined
	Retry   *time.Time        `json:"retry,omitempty"`   // with FaultOfHost, the earliest time of the next attempt
}

// String returns the fault in a few words; "" if there is none.
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

// Duration returns how long the run took.
func (r *Report) Duration() time.Duration { return max(0, r.Ended.Sub(r.Started)) }

// FirstFailure returns the first state that failed, or nil.
func (r *Report) FirstFailure() *Step {
	for i := range r.Steps {
		if r.Steps[i].Result == StepFailed {
			return &r.Steps[i]
		}
	}
	return nil
}

// About returns the pair that a run's outcome is about: the deployed pair if the run converged or rolled back, or if
// the pair that it was to deploy was not available or refused, otherwise the pair that it tried to deploy. It is nil if
// no pair was known.
func (r *Report) About() *ledger.Pair {
	if r.Left != nil && !r.Test && (r.Outcome == Converged || r.Outcome == RolledBack) {
		return r.Left
	}
	return cmp.Or(r.Instead, r.To, r.BaseAlone)
}

// Stage is one part of a run.
type Stage struct {
	Name     string        `json:"name"`
	Started  time.Time     `json:"started"`
	Duration time.Duration `json:"duration_ns"`
	Error    string        `json:"error,omitempty"`
}

// StageNames returns the names of the stages that ran, in order.
func (r *Report) StageNames() []string {
	var names []string
	for _, s := range r.Stages {
		names = append(names, s.Name)
	}
	return names
}
