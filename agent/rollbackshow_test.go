package agent_test

import (
	"os"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
)

// TestDryRollbackShowsChanges also checks that the dry run changes nothing.
func TestDryRollbackShowsChanges(t *testing.T) {
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
		t.Errorf("the dry run converged %q", l.engine.converged)
	}
	if after, err := os.ReadFile(l.Layout.Ledger()); err != nil || string(after) != string(before) {
		t.Errorf("a dry run changed the ledger: %v", err)
	}
	if _, err := l.ShowRollback(t.Context(), "7"); exit.Code(err) != exit.Usage {
		t.Errorf("a version that is not on the disk: %v", err)
	}
}

// TestDryRollbackShowsUnits checks that the output names the unit, which is not restarted, and the changes that cannot
// be undone.
func TestDryRollbackShowsUnits(t *testing.T) {
	l, u := runningUnits(t, "1", "app.service")
	l.app("2")
	l.expect(exit.OK)
	u.runs(t, "app.service", "2")
	acted := len(u.acted)
	r, err := l.ShowRollback(t.Context(), "1")
	must(t, err)
	noted(t, r, "would go back to myapp 1")
	noted(t, r, "would restart app.service")
	u.runs(t, "app.service", "2")
	if len(u.acted) != acted || len(r.Units) != 0 {
		t.Errorf("a dry run did %q to units, and reports %v", u.acted[acted:], r.Units)
	}
	l.links("2", "2", "1")
}

// TestDryRollbackWithoutTargetIsRefused checks the same refusal as for a rollback.
func TestDryRollbackWithoutTargetIsRefused(t *testing.T) {
	l := newLab(t)
	_, err := l.ShowRollback(t.Context(), "")
	if exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), "nothing on this host was deployed yet") {
		t.Errorf("exit code %d: %v", exit.Code(err), err)
	}
}
