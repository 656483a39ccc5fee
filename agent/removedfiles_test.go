package agent_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/lock"
	"github.com/corpus-agent/corpus-agent/state"
)

// TestAStateDirectoryRemovedDuringARunIsWrittenAgain removes the agent's state directory during a run.
func TestAStateDirectoryRemovedDuringARunIsWrittenAgain(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	l.publish("2")
	l.engine.during = func(state.Request) { must(t, os.RemoveAll(l.Layout.State())) }
	noted(t, l.expect(exit.OK), "was removed during this run, with the root of trust; it was written again")
	l.engine.during = nil
	if s, err := l.Status(); err != nil || !s.Bootstrapped || s.RootLost() {
		t.Errorf("the host has lost its root of trust: %+v, %v", s, err)
	}
	l.publish("3")
	if err := l.tick(); err != nil {
		t.Errorf("the next run: %v", err)
	}
	l.links("3", "3", "2")
}

// TestRunWithRemovedLockFileStaysExclusive starts a second run after the lock file of the first was removed.
func TestRunWithRemovedLockFileStaysExclusive(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	l.publish("2")
	var second error
	l.engine.during = func(state.Request) {
		l.engine.during = nil
		must(t, os.Remove(l.Layout.Lock()))
		_, second = l.deploy()
		if s, err := l.Status(); err != nil || s.Running == nil || s.Cut != nil {
			t.Errorf("status of an active run: running %+v, interrupted %+v, %v", s.Running, s.Cut, err)
		}
	}
	r := l.expect(exit.OK)
	var held *lock.Held
	if !errors.As(second, &held) || exit.Code(second) != exit.Locked || held.Holder.PID != os.Getpid() {
		t.Errorf("the second run ended with %v", second)
	}
	if strings.Contains(strings.Join(r.Notes, "\n"), "interrupted") {
		t.Errorf("notes are %q", r.Notes)
	}
}

// TestStatusNamesALostRoot removes the root of trust of a host.
func TestStatusNamesALostRoot(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	if s, err := l.Status(); err != nil || s.RootLost() {
		t.Fatalf("before: %v, %v", s.RootLost(), err)
	}
	must(t, os.RemoveAll(l.Layout.State()))
	if s, err := l.Status(); err != nil || !s.RootLost() {
		t.Errorf("status does not report the lost root: %+v, %v", s, err)
	}
	w, err := l.Why()
	if err != nil || !strings.Contains(strings.Join(w.Next, "\n"), "--trust-root") {
		t.Errorf("why has the advice %q, %v", w.Next, err)
	}
	if err := l.tick(); exit.Code(err) != exit.Refused {
		t.Errorf("a run ended with %v", err)
	}
}

// TestANewerCopyOfTheLedgerIsUsed restores the state directory from before a quarantine and a hold.
func TestANewerCopyOfTheLedgerIsUsed(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	saved := t.TempDir()
	must(t, os.CopyFS(saved, os.DirFS(l.Layout.State())))
	l.publish("2")
	l.engine.fails = func(what string) error {
		if strings.HasSuffix(what, "2") {
			return exit.WithCode(exit.Failed, errors.New("it does not converge"))
		}
		return nil
	}
	l.expect(exit.RolledBack)
	must(t, l.Hold("release freeze"))
	must(t, os.RemoveAll(l.Layout.State()))
	must(t, os.CopyFS(l.Layout.State(), os.DirFS(saved)))
	must(t, os.Chmod(l.Layout.State(), 0o700))
	if s, err := l.Status(); err != nil || len(s.Quarantined) != 1 || s.Hold == nil {
		t.Errorf("status has %d in quarantine, held: %v; %v", len(s.Quarantined), s.Hold, err)
	}
	l.engine.converged = nil
	noted(t, l.expect(exit.OK), "was older than its copy /srv/projects/.ledger.json")
	if strings.Contains(strings.Join(l.engine.converged, " "), "2") {
		t.Errorf("the release in quarantine was converged again: %q", l.engine.converged)
	}
	if s, err := l.Status(); err != nil || len(s.Quarantined) != 1 || s.Hold == nil {
		t.Errorf("after the run, status has %d in quarantine, held: %v; %v", len(s.Quarantined), s.Hold, err)
	}
}

// TestRollbackRestoresALostNext removes links before a deploy that fails.
func TestRollbackRestoresALostNext(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	must(t, os.Remove(l.Layout.Path("/srv/service/next")))
	l.publish("2")
	l.engine.fails = func(what string) error {
		if strings.HasSuffix(what, "2") {
			return exit.WithCode(exit.Failed, errors.New("it does not converge"))
		}
		return nil
	}
	l.expect(exit.RolledBack)
	l.links("1", "1", "")
}
