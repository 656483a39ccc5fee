package inspect

import (
	"fmt"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/lock"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// Cut is a run that was interrupted by a power failure, a kill or a crash, and that no run has resumed since.
type Cut struct {
	Run     string       `json:"run,omitempty"`
	Command string       `json:"command,omitempty"`
	Began   *time.Time   `json:"began,omitempty"`
	Pair    *ledger.Pair `json:"pair,omitempty"` // the pair that it deployed or rolled back
	Back    bool         `json:"back,omitempty"` // it was rolling back
	// the step that it ended, or in which it last changed the host; "" if unknown
	Step    string `json:"step,omitempty"`
	Ended   bool   `json:"ended,omitempty"`    // it ended by itself, and could not record that
	Exit    int    `json:"exit,omitempty"`     // code with which it ended by itself, unfinished; 0 for none
	TakesUp bool   `json:"takes_up,omitempty"` // the next run continues with it; otherwise it starts from the beginning
	// it was a rollback by hand that had moved nothing, which no run repeats: a person has to run it again
	Again bool `json:"again,omitempty"`
}

// String describes the interrupted run: its step, and what the next run does.
func (c Cut) String() string {
	text := strings.TrimSpace(c.Command + " run " + c.Run)
	if c.Run == "" {
		text = c.Command
	}
	if c.Began != nil {
		text += ", which began " + diag.Stamp(*c.Began) + ","
	}
	switch {
	case c.Ended:
		text += " ended and could not write that down"
	case c.Exit != 0:
		text += fmt.Sprintf(" ended with exit code %d and is not finished", c.Exit)
	default:
		text += " was interrupted"
	}
	if c.Step != "" {
		text += " in " + c.Step
	}
	switch {
	case c.Pair != nil && c.Back:
		text += fmt.Sprintf(", rolling back from %s", c.Pair)
	case c.Pair != nil:
		text += fmt.Sprintf(", deploying %s", c.Pair)
	}
	switch {
	case c.TakesUp && c.Back:
		return text + "; the next run finishes that first"
	case c.TakesUp:
		return text + "; the next run resumes it"
	case c.Again:
		return text + "; nothing was rolled back, and the next run does not do it: run corpus-agent rollback again"
	}
	return text + "; the next run starts from the beginning"
}

// cutRun returns the interrupted run: the ledger has one that was deploying, and the file of the lock names any other
// that was killed. s must have no run in progress, and must have the last report.
func (h *Host) cutRun(s Status) *Cut {
	if u := s.CutShort; u != nil {
		c := &Cut{Run: u.Run, Command: u.Command, Began: u.Began, Pair: &u.Pair, Back: u.Back || u.Failed, TakesUp: true}
		if c.Command == "" {
			c.Command = "deploy" // an earlier version of the agent wrote it
		}
		if r, err := h.Reports().Load(u.Run); err == nil {
			c.Exit = r.Exit
		}
		if c.Step = u.EndedIn; c.Step == "" {
			c.Step = h.cutIn(c.Run, time.Time{}, c)
		}
		return c
	}
	left, ok := lock.Abandoned(h.Layout.Lock())
	if !ok || s.LastRun != nil && !s.LastRun.Started.Before(left.Since) {
		return nil // it has saved its report
	}
	c := &Cut{Command: left.Command, Began: &left.Since, Again: unmoved(left, s.Since)}
	c.Step = h.cutIn("", left.Since, c)
	return c
}

// unmoved reports whether the holder of a lock that ended without a trace in the ledger was a rollback by hand. since
// is when the deployed pair was deployed: a later one had ended, and was killed before its report was saved.
func unmoved(left lock.Holder, since *time.Time) bool {
	return left.Command == "rollback" && (since == nil || since.Before(left.Since))
}

// Dropped describes a rollback by hand that was interrupted before it moved the links, and that no run does; "" if the
// last holder of the lock was none. book is the ledger, which has a rollback that moved links.
func (h *Host) Dropped(left lock.Holder, book *ledger.Ledger) (string, error) {
	last, err := h.Reports().Last()
	if err != nil || book.Running != nil || !unmoved(left, book.Since) ||
		last != nil && !last.Started.Before(left.Since) {
		return "", err
	}
	return fmt.Sprintf("a rollback that began %s was interrupted before it moved the links: nothing was rolled back; to "+
		"do it: corpus-agent rollback", diag.Stamp(left.Since)), nil
}

// cutIn returns the step in which a run last changed the host. If run is "", it is the newest run of the journal that
// began at or after the given time, and c gets its ID.
func (h *Host) cutIn(run string, began time.Time, c *Cut) string {
	machine, err := h.StateHost()
	if err != nil {
		return ""
	}
	last, err := h.Journal().Last()
	if err != nil || last == nil || len(last.Runs) == 0 {
		return "" // a rollback reports a damaged journal
	}
	if run == "" {
		run = last.Runs[len(last.Runs)-1]
		if run < report.NewID(began) {
			return ""
		}
		c.Run = run
	}
	return h.shown(last.InterruptedStep(run, machine))
}

// doing describes the step of a run in progress, such as a hook or a state that has something to change, and for how
// long it has been under way; "" if the journal has none. began is when the run took the lock.
func (h *Host) doing(began time.Time) string {
	last, err := h.Journal().Last()
	if err != nil || last == nil {
		return "" // the run reports a damaged journal
	}
	step, since := last.OpenStep(report.NewID(began))
	if step == "" {
		return ""
	}
	return fmt.Sprintf("%s of %s, for %s", h.shown(step), last.Name, diag.Elapsed(h.Time().Sub(since)))
}

// shown returns a text of the journal without secrets and control characters.
func (h *Host) shown(text string) string {
	return redact.Controls(redact.URLs(h.Secrets().Text(text)))
}
