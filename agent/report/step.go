package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Counts counts the states of a run by their results.
type Counts struct {
	Total   int `json:"total"`
	Changed int `json:"changed"`
	Failed  int `json:"failed"`
	Skipped int `json:"skipped"`          // would have changed something outside the root
	Pending int `json:"pending"`          // would change, in a dry run
	Always  int `json:"always,omitempty"` // of Changed and Pending: states that act at every run; no drift
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

// Effective returns how many states corrected drift: the changed ones without those that act at every run, whose
// changes do not show how the host was.
func (c Counts) Effective() int { return max(0, c.Changed-c.Always) }

// String returns the counts in a line.
func (c Counts) String() string {
	text := fmt.Sprintf("%s, %d changed", diag.Count(c.Total, "state"), c.Effective())
	if c.Always > 0 {
		text += fmt.Sprintf(", %d always", c.Always)
	}
	return text + fmt.Sprintf(", %d failed", c.Failed)
}

// The results of a step.
const (
	StepOK      = "ok"
	StepFailed  = "failed"
	StepPending = "would change"
	StepSkipped = "skipped"
	StepNotRun  = "not run"
)

// Step is the result of one state.
type Step struct {
	ID       string        `json:"id"`
	Function string        `json:"function"`
	Name     string        `json:"name"`
	SLS      string        `json:"sls"`
	Result   string        `json:"result"`
	Changes  *value.Map    `json:"changes"`           // with StepPending, the changes that a run would make
	Unknown  bool          `json:"unknown,omitempty"` // with StepPending: only applying the state shows its changes
	Always   bool          `json:"always,omitempty"`  // it acts at every run, so its changes are not drift
	Comment  string        `json:"comment,omitempty"`
	Hint     string        `json:"hint,omitempty"`
	Code     string        `json:"code,omitempty"` // of the hint
	Warnings []string      `json:"warnings,omitempty"`
	Duration time.Duration `json:"duration_ns"`
}

// StepOf converts an engine's result into a Step.
func StepOf(r *exec.Result) Step {
	s := Step{
		ID: r.ID(), Function: r.Step.Function(), Name: r.Name(), SLS: r.Step.SLS(), Result: StepOK,
		Changes: r.Changes, Always: r.Always, Comment: r.Explanation(), Hint: r.Hint, Code: diag.CodesOf(r.Hint),
		Warnings: r.Warnings, Duration: r.Duration,
	}
	switch {
	case r.Skipped != "":
		s.Result = StepSkipped
	case r.Outcome == exec.Failed, r.SubFailure() != "":
		s.Result = StepFailed
	case r.Outcome == exec.Pending:
		s.Result, s.Unknown = StepPending, r.Unknown
		if r.Predicted != nil { // nil if the engine made no prediction
			s.Changes = r.Predicted
		}
	case r.NotRun:
		s.Result = StepNotRun
	}
	s.Changes, _ = value.Printable(s.Changes).(*value.Map)
	return s
}

// MarshalJSON writes the step. If its changes cannot be written, it writes why in their place, so that they never
// cost the report of a run.
func (s Step) MarshalJSON() ([]byte, error) {
	type members Step
	data, err := unescaped(members(s))
	if err != nil {
		s.Changes = value.NewMap("left out", fmt.Sprintf("the changes cannot be written as JSON: %v", err))
		return unescaped(members(s))
	}
	return data, nil
}

// unescaped writes v as JSON. Whether <, > and & are escaped is left to the encoder of the whole document.
func unescaped(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

// UnknownReason returns the reason why a dry run could not determine what a state would do, in one line. It returns ""
// if it could, or if the state is a command, whose effect only running it shows.
func (s Step) UnknownReason() string {
	comment, _, _ := strings.Cut(s.Comment, "\n")
	if !s.Unknown || !strings.HasPrefix(comment, "unknown, because ") && !strings.HasPrefix(comment, "unknown until ") {
		return ""
	}
	return strings.TrimPrefix(strings.TrimPrefix(comment, "unknown"), ", ")
}

// Quiet reports whether a step has nothing to report.
func (s Step) Quiet() bool {
	return (s.Result == StepOK || s.Result == StepNotRun) && s.Changes.Len() == 0 && len(s.Warnings) == 0
}
