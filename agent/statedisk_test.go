package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// TestAFullStateDirectoryIsShown fills the filesystem of the state directory: the run takes the lock and says what to
// do about the disk, and so does status.
func TestAFullStateDirectoryIsShown(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	dir := l.Layout.State()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"); err != nil {
		t.Skipf("mounting a filesystem takes rights that this test does not have: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	l.publish("1")
	l.expect(exit.OK)
	if s, err := l.Status(); err != nil || s.Unwritable != "" {
		t.Fatalf("status says %q, %v", s.Unwritable, err)
	}
	_ = os.WriteFile(filepath.Join(dir, "x"), make([]byte, 9<<20), 0o600) // as far as there is room
	converged := len(l.engine.asked)
	_, err := l.deploy()
	if err != nil && (strings.Contains(err.Error(), "locking") || !strings.Contains(diag.HintOf(err), "room")) {
		t.Errorf("the run ends with %v, hint %q", err, diag.HintOf(err))
	}
	if err == nil && len(l.engine.asked) == converged {
		t.Error("the run did not converge what is current")
	}
	t.Logf("the run ended with %v", err)
	s, err := l.Status()
	if err != nil || !strings.Contains(s.Unwritable, "make room") {
		t.Errorf("status says %q, %v", s.Unwritable, err)
	}
}
