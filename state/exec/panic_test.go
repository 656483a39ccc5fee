package exec_test

import (
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/exec"
)

// TestPanicOfAStateIsItsFailure runs a state function that panics: it fails with the place, and the others run.
func TestPanicOfAStateIsItsFailure(t *testing.T) {
	c := &cloud{}
	for _, parallel := range []int{0, 4} {
		results := c.results(t, parallel, "a: {thing.made: [panic: true]}\nb: {thing.made: []}\n")
		if r := results[0]; r.Outcome != exec.Failed || !strings.Contains(r.Comment, "internal error in") ||
			!strings.Contains(r.Comment, "wide_test.go:") || !strings.Contains(r.Hint, "report it") {
			t.Errorf("it ends as %v: %s (%s)", r.Outcome, r.Comment, r.Hint)
		}
		if r := results[1]; r.Outcome != exec.Succeeded {
			t.Errorf("the next state ends as %v: %s", r.Outcome, r.Comment)
		}
	}
}
