package agent_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// atStage calls a function at a stage of a run.
type atStage struct {
	*interrupter
	stage string
	call  func()
}

func (a atStage) Stage(name, _ string) {
	if name == a.stage {
		a.call()
	}
}

// makeImmutable makes a file impossible to remove until loose is called.
func makeImmutable(t *testing.T, file string) (loose func()) {
	t.Helper()
	dir := filepath.Dir(file)
	loose = func() { _ = os.Chmod(dir, 0o755) }
	if os.Geteuid() == 0 {
		if out, err := exec.Command("chattr", "+i", file).CombinedOutput(); err != nil {
			t.Skipf("this test needs a file that root cannot remove: %v: %s", err, out)
		}
		loose = func() { _ = exec.Command("chattr", "-i", file).Run() } // the file may be gone
	} else if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(loose)
	return loose
}

const leftoverStates = `
/etc/app/d/last:
  file.managed:
    - contents: last
/etc/app/d/app.conf:
  file.managed:
    - contents: four
`

// leftover returns a host on version 3 whose previous version 2 is in quarantine, and whose rollback from version 4
// could not remove a file. Version 3 changed the host again during that rollback.
func leftover(t *testing.T) (l *lab, file string, loose func()) {
	t.Helper()
	l = newNativeLab(t)
	for _, version := range []string{"1", "2", "3"} {
		l.states(version, "/etc/app/d/app.conf:\n  file.managed:\n    - makedirs: True\n    - contents: '"+version+"'\n"+
			"/etc/app/drifts-"+version+":\n  file.managed:\n    - contents: one\n")
		l.expect(exit.OK)
	}
	l.edit(func(book *ledger.Ledger) {
		book.Quarantine(ledger.Bad{Pair: *book.Previous, Release: &book.Previous.Service, Reason: "it failed later",
			Run: "r"})
	})
	file = l.Layout.Path("/etc/app/d/last")
	l.states("4", leftoverStates+"it fails:\n  test.fail_without_changes: []\n")
	loose = func() {}
	l.Sinks = append(l.Sinks, atStage{stage: "undo", call: func() {
		loose = makeImmutable(t, file)
		if err := os.WriteFile(l.Layout.Path("/etc/app/drifts-3"), []byte("drifted"), 0o644); err != nil {
			t.Error(err)
		}
	}})
	_, err := l.deploy()
	if exit.Code(err) != exit.RollbackFailed || !strings.Contains(diag.HintOf(err), "corpus-agent rollback --converge") {
		t.Fatalf("exit code %d, %v (hint: %s)", exit.Code(err), err, diag.HintOf(err))
	}
	l.Sinks = nil
	return l, file, loose
}

// edit changes the ledger of a host.
func (l *lab) edit(change func(*ledger.Ledger)) {
	l.t.Helper()
	book, err := l.ReadHostLedger()
	if err == nil {
		change(book)
		err = book.Save(l.Layout.Ledger())
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

// TestHintOfAFailedRollbackFinishesIt runs the command of the hint: the host stays on the working release while the
// rest cannot be undone, and after it is undone.
func TestHintOfAFailedRollbackFinishesIt(t *testing.T) {
	l, file, loose := leftover(t)
	l.links("3", "3", "2")
	shown, err := l.RollbackConverge(t.Context(), "", true)
	if err != nil {
		t.Fatal(err)
	}
	noted(t, shown, "would undo what is left of myapp 4; myapp 3 would stay deployed")
	for range 2 {
		if _, err = l.RollbackConverge(t.Context(), "", false); exit.Code(err) != exit.RollbackFailed {
			t.Fatalf("with the file that cannot be removed: exit code %d, %v", exit.Code(err), err)
		}
		l.links("3", "3", "2")
	}
	loose()
	r, err := l.RollbackConverge(t.Context(), "", false)
	if err != nil {
		t.Fatal(err)
	}
	l.links("3", "3", "2")
	if _, err := os.Lstat(file); err == nil {
		t.Error("the file of version 4 still exists")
	}
	for name, want := range map[string]string{"d/app.conf": "3\n", "drifts-3": "one\n"} {
		if data, err := os.ReadFile(l.Layout.Path("/etc/app/" + name)); string(data) != want {
			t.Errorf("%s is %q, %v, want %q", name, data, err, want)
		}
	}
	s := mustStatus(t, l)
	for _, bad := range s.Quarantined {
		if bad.Release.Version == "3" {
			t.Errorf("version 3 is in quarantine: %s", bad.Reason)
		}
	}
	if r.Leaves != nil || r.Left.Service.Version != "3" {
		t.Errorf("the report has left %v for %v", r.Leaves, r.Left)
	}
	// After the rollback is complete, the same command rolls back further, past the version in quarantine.
	if _, err := l.RollbackConverge(t.Context(), "", false); err != nil {
		t.Fatal(err)
	}
	if got := l.version("service/current"); got != "1" {
		t.Errorf("the current version is %s, want 1", got)
	}
}

// TestRollbackSkipsQuarantine checks that a rollback leads to a version in quarantine only if the version is
// named.
func TestRollbackSkipsQuarantine(t *testing.T) {
	l := newLab(t)
	for _, version := range []string{"1", "2", "3"} {
		l.publish(version)
		l.expect(exit.OK)
	}
	l.edit(func(book *ledger.Ledger) {
		book.Quarantine(ledger.Bad{Pair: *book.Previous, Release: &book.Previous.Service, Reason: "it failed later",
			Run: "r"})
	})
	if s := mustStatus(t, l); s.Previous == nil || s.Previous.Service.Version != "1" {
		t.Errorf("status has the target of a rollback %v, want version 1", s.Previous)
	}
	if _, err := l.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.links("1", "1", "")
	if _, err := l.RollbackTo(t.Context(), "2"); err != nil {
		t.Fatal(err)
	}
	l.links("2", "2", "") // every other version is in quarantine
}

// TestResumedRollbackStopsAtItsTarget interrupts a rollback to version 1, which has an earlier version 0.
func TestResumedRollbackStopsAtItsTarget(t *testing.T) {
	for name, back := range map[string]func(*lab) error{
		"rollback":            func(l *lab) error { _, err := l.Rollback(l.t.Context()); return err },
		"rollback --converge": func(l *lab) error { _, err := l.RollbackConverge(l.t.Context(), "", false); return err },
	} {
		t.Run(name, func(t *testing.T) {
			l := interruptedRollbackFrom(t, "0", "1", "2")
			if err := back(l); err != nil {
				t.Fatal(err)
			}
			if got := l.version("service/current"); got != "1" {
				t.Errorf("the current version is %s, want 1", got)
			}
			if _, err := os.Lstat(l.Layout.Path("/etc/app/last")); err == nil {
				t.Error("the file of version 2 still exists")
			}
		})
	}
}
