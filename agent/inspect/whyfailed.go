package inspect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/report"
)

// findFailure returns the newest run that failed after the deploy of the current pair.
func (h *Host) findFailure(w *Why) error {
	ids, err := h.Reports().IDs()
	if err != nil {
		return err
	}
	succeeded := false
	for _, id := range slices.Backward(ids) {
		r, err := h.Reports().Load(id)
		if err != nil {
			return err
		}
		if r.Exit != exit.OK && h.Concerns(r) {
			w.Failed, w.FailedIn = firstFailure(r), r.ID
			if p := w.Postponed; p != nil && p.Run == r.ID && failedHook(r) != "" {
				w.Failed = p.Reason // which has the reason why the host did not start a hook
			}
			if w.Settled = succeeded && !w.keepsAway(r.ID); !w.Settled {
				w.Hint, w.Code = r.Hint, r.Code
			}
			return nil
		}
		if h.Concerns(r) && w.began(r) {
			return nil
		}
		succeeded = succeeded || r.Command == "deploy" && h.Concerns(r)
	}
	return nil
}

// began reports whether a run deployed the current pair. Times are not compared: the clock may have been ahead.
func (w Why) began(r *report.Report) bool {
	return w.Deployed != nil && r.Left != nil && r.Left.Same(*w.Deployed) &&
		(r.From == nil || !r.From.Same(*r.Left))
}

// keepsAway reports whether something is still not deployed because of a run.
func (w Why) keepsAway(run string) bool {
	return slices.ContainsFunc(w.Quarantined, func(b ledger.Bad) bool {
		return b.Run == run
	}) || w.Postponed != nil && w.Postponed.Run == run
}

// firstFailure returns the first failure of a run: that of a state, a hook, a probe, or a stage.
func firstFailure(r *report.Report) string {
	if first := failedHook(r); first != "" {
		return first
	}
	if s := r.FirstFailure(); s != nil {
		return fmt.Sprintf("%s %s (%s in %s): %s", s.Function, s.Name, s.ID, s.SLS, s.Comment)
	}
	for _, p := range r.Health {
		if p.Error != "" {
			return strings.Join(append([]string{fmt.Sprintf("health %s: %s", p.Probe, p.Error)}, p.Journal...), "\n")
		}
	}
	for _, stage := range r.Stages {
		if stage.Error != "" {
			return stage.Name + ": " + stage.Error
		}
	}
	return r.Error
}

// failedHook returns the hook or procedure in which a run failed first; "" if another step failed before. Later hooks
// may have failed during the rollback, and belong to another release.
func failedHook(r *report.Report) string {
	for _, stage := range r.Stages {
		// a run may continue without one of the two releases
		if stage.Error == "" || stage.Name == "resolve" || stage.Name == "fetch" {
			continue
		}
		for _, h := range r.Hooks[stage.Name] {
			if h.Error != "" {
				text := fmt.Sprintf("%s hook %s: %s", stage.Name, strings.TrimSuffix(h.Name+" of "+h.Release, " of "), h.Error)
				return strings.Join(append([]string{text}, lastLines(h.Output)...), "\n")
			}
		}
		return ""
	}
	return ""
}

// lastLines returns the last lines of the output of a program. The report has it without secrets and control
// characters.
func lastLines(output string) []string {
	const most, longest = 10, 500
	var lines []string
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, " \t\r\n")
		if line == "" {
			continue
		}
		if runes := []rune(line); len(runes) > longest {
			line = string(runes[:longest]) + " ..."
		}
		lines = append(lines, line)
	}
	return lines[max(len(lines)-most, 0):]
}
