package main

import (
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/exec"
)

// TestOrchestrateRefusesUselessFlags gives flags that no run can use. They are refused before anything is asked.
func TestOrchestrateRefusesUselessFlags(t *testing.T) {
	o := newOrchestrator(t, tree())
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--endpoint", ""}, `--endpoint "" is not`},
		{[]string{"--endpoint", "file:///etc"}, "is not the URL of a server"},
		{[]string{"--endpoint", "ftp://example.com"}, "is not the URL of a server"},
		{[]string{"--endpoint", "127.0.0.1:5000"}, "is not the URL of a server"},
		{[]string{"--parallel", "0"}, "--parallel is 0"},
		{[]string{"--parallel", "-3"}, "--parallel is -3"},
		{[]string{"--set", "=x"}, "--set =x has no name"},
		{[]string{"--pillar", "nope.yaml"}, "--pillar: stat nope.yaml"},
	} {
		_, errs := o.run(2, append([]string{"shop", "--test", "--set", "service_instance=testing"}, c.args...)...)
		if !strings.Contains(errs, c.want) || !strings.Contains(errs, "hint:") || o.queues.requests > 0 {
			t.Errorf("%q gives %s", c.args, errs)
		}
	}
}

// TestInterruptedPlansAreIncomplete prints a plan of which some states were not begun.
func TestInterruptedPlansAreIncomplete(t *testing.T) {
	var w strings.Builder
	(&orchestrated{list: []*exec.Result{}, all: 3, dry: true}).show(&w)
	if !strings.Contains(w.String(), "0 failed, 3 not begun in") ||
		!strings.Contains(w.String(), "the plan is incomplete") {
		t.Errorf("an interrupted plan prints %s", w.String())
	}
	w.Reset()
	(&orchestrated{list: []*exec.Result{}, all: 0}).show(&w)
	if strings.Contains(w.String(), "not begun") {
		t.Errorf("a complete run prints %s", w.String())
	}
}
