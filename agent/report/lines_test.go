package report_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/hook"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// printed returns the lines for a state that changed, one that failed and one without a change.
func printed(l report.Lines) string {
	var out bytes.Buffer
	l.Out = &out
	changes := value.NewMap("mode", value.NewMap("old", "0644", "new", "0600"))
	l.Step(report.Step{ID: "one", Function: "file.managed", Name: "/etc/one", Result: report.StepOK, Changes: changes})
	l.Step(report.Step{
		ID: "two", Function: "cmd.run", Name: "false", SLS: "web", Result: report.StepFailed,
		Changes: value.NewMap(), Comment: "it ended with 1", Hint: "look",
	})
	l.Step(report.Step{ID: "three", Function: "test.nop", Name: "three", Result: report.StepOK, Changes: value.NewMap()})
	return out.String()
}

func TestModesPrintMoreOrLess(t *testing.T) {
	const changed, failed = "changed  file.managed /etc/one\n", "FAILED   cmd.run false (two in web)\n"
	const detail = "mode: 0644 -> 0600"
	const briefly = "FAILED   cmd.run false (two in web): it ended with 1\n"
	const why, ok = "it ended with 1", "ok       test.nop three\n"
	for name, c := range map[string]struct {
		lines  report.Lines
		has    []string
		hasNot []string
	}{
		"by default":    {report.Lines{}, []string{changed, failed, why, "hint: look"}, []string{detail, ok}},
		"mixed":         {report.Lines{Mode: report.Mixed}, []string{changed, failed, why}, []string{detail, ok}},
		"terse":         {report.Lines{Mode: report.Terse}, []string{changed, briefly}, []string{detail, "hint", ok}},
		"changes":       {report.Lines{Mode: report.Changes}, []string{detail, failed, why}, []string{ok}},
		"full":          {report.Lines{Mode: report.Full}, []string{detail, failed, why}, []string{ok}},
		"state_verbose": {report.Lines{States: true}, []string{changed, failed, ok}, []string{detail}},
		"-v":            {report.Lines{Verbose: true, Mode: report.Terse}, []string{detail, why, ok}, nil},
	} {
		text := printed(c.lines)
		for _, want := range c.has {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is not in\n%s", name, want, text)
			}
		}
		for _, not := range c.hasNot {
			if strings.Contains(text, not) {
				t.Errorf("%s: %q is in\n%s", name, not, text)
			}
		}
	}
}

func TestRunThatChangedNothingPrintsNothing(t *testing.T) {
	var out bytes.Buffer
	l := &report.Lines{Out: &out}
	l.Begin(&report.Report{})
	l.Stage("converge", "myapp 1")
	l.Step(report.Step{Function: "test.nop", Result: report.StepOK, Changes: value.NewMap()})
	l.End(&report.Report{Outcome: report.Converged, States: report.Counts{Total: 1}})
	if out.Len() > 0 {
		t.Errorf("the output is %q", out.String())
	}
}

// A name of a file, a comment and an output may contain lines that look like those of the agent.
func TestLinesOfOthersAreIndented(t *testing.T) {
	const forged = "x\nerror: y\nFAILED z\n"
	var out bytes.Buffer
	l := report.Lines{Out: &out, Mode: report.Full}
	for _, result := range []string{report.StepOK, report.StepFailed, report.StepPending, report.StepSkipped} {
		l.Step(report.Step{ID: forged, SLS: "web", Function: "file.directory", Name: forged, Result: result, Comment: forged,
			Warnings: []string{forged}, Hint: "look", Changes: value.NewMap(forged, "removed", "diff", forged)})
	}
	l.Note(forged)
	for _, stage := range []string{"pre-release", report.UnitsStage, report.HealthStage} {
		l.Hook(stage, hook.Result{Name: "10-test", Error: forged, Output: forged})
		l.Hook(stage, hook.Result{Name: "10-test", Output: forged})
	}
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "error:") || strings.HasPrefix(line, "FAILED z") {
			t.Fatalf("a forged line begins at the left:\n%s", &out)
		}
	}
}
