package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// TestFullStateDirectoryIsReported fills the filesystem of the state directory: the run acquires the lock and has a
// hint about the disk, and so does status.
func TestFullStateDirectoryIsReported(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	dir := l.Layout.State()
	mountStateDirectory(t, dir)
	l.publish("1")
	l.expect(exit.OK)
	if s, err := l.Status(); err != nil || s.Unwritable != "" {
		t.Fatalf("status has %q, %v", s.Unwritable, err)
	}
	_ = os.WriteFile(filepath.Join(dir, "x"), make([]byte, 9<<20), 0o600) // until the filesystem is full
	converged := len(l.engine.converged)
	_, err := l.deploy()
	if err != nil && (strings.Contains(err.Error(), "locking") || !strings.Contains(diag.HintOf(err), "room")) {
		t.Errorf("the run ends with %v, hint %q", err, diag.HintOf(err))
	}
	if err == nil && len(l.engine.converged) == converged {
		t.Error("the run did not converge the current pair")
	}
	t.Logf("the run ended with %v", err)
	s, err := l.Status()
	if err != nil || !strings.Contains(s.Unwritable, "make room") {
		t.Errorf("status has %q, %v", s.Unwritable, err)
	}
}

// mountStateDirectory mounts a small filesystem at the state directory.
func mountStateDirectory(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=8m,nr_inodes=400"); err != nil {
		t.Skipf("this test cannot mount a filesystem: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// TestDeployWithoutInodesForLedgerIsRefused checks that the deploy succeeds once inodes are free.
func TestDeployWithoutInodesForLedgerIsRefused(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	dir := l.Layout.State()
	mountStateDirectory(t, dir)
	l.publish("1")
	l.expect(exit.OK)
	l.publish("2")
	var fill []string
	for left := uint64(100); left > 3; {
		var fs syscall.Statfs_t
		must(t, syscall.Statfs(dir, &fs))
		if left = fs.Ffree; left > 3 {
			fill = append(fill, filepath.Join(dir, fmt.Sprint("fill", len(fill))))
			must(t, os.WriteFile(fill[len(fill)-1], nil, 0o600))
		}
	}
	converged := len(l.engine.converged)
	for range 2 {
		if _, err := l.deploy(); exit.Code(err) != exit.Internal || !strings.Contains(diag.HintOf(err), "make room") {
			t.Errorf("exit code %d, %v, hint %q", exit.Code(err), err, diag.HintOf(err))
		}
	}
	l.links("1", "1", "")
	for _, pair := range l.engine.converged[converged:] { // the current pair may converge
		if strings.Contains(pair, "2") {
			t.Errorf("states of the new release ran: %q", l.engine.converged[converged:])
		}
	}
	for _, name := range fill {
		must(t, os.Remove(name))
	}
	l.expect(exit.OK)
	l.links("2", "2", "1")
}

// TestRollbackConvergeWithoutRoomChangesNothing checks that the rollback succeeds once the disk has room.
func TestRollbackConvergeWithoutRoomChangesNothing(t *testing.T) {
	l := newNativeLab(t)
	mountStateDirectory(t, l.Layout.State())
	l.states("1", goodStates)
	l.expect(exit.OK)
	before := snapshot(t, l.Layout.Root)
	l.states("2", strings.ReplaceAll(badStates, "it fails:\n  test.fail_without_changes: []\n", ""))
	l.expect(exit.OK)
	after := snapshot(t, l.Layout.Root)
	fill := filepath.Join(l.Layout.State(), "fill")
	if err := os.WriteFile(fill, make([]byte, 9<<20), 0o600); err == nil {
		t.Fatal("the filesystem is not full")
	}
	_, err := l.RollbackConverge(t.Context(), "", false)
	if exit.Code(err) != exit.Internal || !strings.Contains(diag.HintOf(err), "make room") {
		t.Errorf("exit code %d, %v, hint %q", exit.Code(err), err, diag.HintOf(err))
	}
	compare(t, "after the rollback without room", after, snapshot(t, l.Layout.Root))
	l.links("2", "2", "1")
	must(t, os.Remove(fill))
	if _, err := l.RollbackConverge(t.Context(), "", false); err != nil {
		t.Fatal(err)
	}
	compare(t, "after the rollback", before, snapshot(t, l.Layout.Root))
	l.links("1", "1", "")
}
