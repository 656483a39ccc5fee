package report_test

import (
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestFailedSubStateFailsItsStep converts the result of a state whose sub state failed.
func TestFailedSubStateFailsItsStep(t *testing.T) {
	sub := value.NewMap("result", false, "comment", "no room", "low", value.NewMap("state", "s", "fun", "f", "name", "n"))
	r := &exec.Result{Outcome: exec.Succeeded, Comment: "done", Changes: value.NewMap(),
		Step: &compile.Step{Chunk: value.NewMap("state", "mine", "fun", "many", "name", "x", "__id__", "x")},
		More: value.NewMap(exec.KeySubStates, value.NewList(sub))}
	got := report.StepOf(r)
	if got.Result != report.StepFailed || !strings.Contains(got.Comment, "its sub state s.f n failed: no room") {
		t.Errorf("the step is %s: %s", got.Result, got.Comment)
	}
	sub.Set("result", true)
	if got := report.StepOf(r); got.Result != report.StepOK || got.Comment != "done" {
		t.Errorf("without a failure, the step is %s: %s", got.Result, got.Comment)
	}
}
