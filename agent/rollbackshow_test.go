package agent_test

import (
	"os"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
)

// TestRollbackIsShownBeforehand and changes nothing.
func TestRollbackIsShownBeforehand(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publishBase("1")
	for _, version := range []string{"1", "2"} {
		l.publish(version)
		l.expect(exit.OK)
	}
	before, err := os.ReadFile(l.Layout.Ledger())
	must(t, err)
	r, err := l.ShowRollback(t.Context(), "")
	must(t, err)
	noted(t, r, "would go back to base 1, myapp 1")
	noted(t, r, "would quarantine myapp 2")
	if l.links("2", "2", "1"); l.engine.last() != "1+1" {
		t.Errorf("showed %q", l.engine.asked)
	}
	if after, err := os.ReadFile(l.Layout.Ledger()); err != nil || string(after) != string(before) {
		t.Errorf("a dry run changed the ledger: %v", err)
	}
	if _, err := l.ShowRollback(t.Context(), "7"); exit.Code(err) != exit.Usage {
		t.Errorf("a version that is not kept: %v", err)
	}
}
