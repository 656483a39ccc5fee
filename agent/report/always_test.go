package report_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestStatesThatAlwaysRunAreMarked distinguishes a state that acts in every run from one that corrected drift.
func TestStatesThatAlwaysRunAreMarked(t *testing.T) {
	var out bytes.Buffer
	l := &report.Lines{Out: &out}
	steps := []report.Step{
		{Function: "cmd.run", Name: "sync", Result: report.StepOK, Changes: value.NewMap("retcode", 0), Always: true},
		{Function: "file.managed", Name: "/etc/f", Result: report.StepOK, Changes: value.NewMap("diff", "x")},
	}
	r := &report.Report{Outcome: report.Converged}
	for _, s := range steps {
		l.Step(s)
		r.States.Add(s)
	}
	l.End(r)
	for _, want := range []string{
		"cmd.run sync (always)\n", "file.managed /etc/f\n", "2 states, 2 changed, 1 of them always",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}
