package agent_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// TestReadOnlySrvConvergesCurrentRelease has the channel move to a release that is on the disk. It cannot be deployed,
// and the current one converges.
func TestReadOnlySrvConvergesCurrentRelease(t *testing.T) {
	if !ownMounts(t) {
		return
	}
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	l.publish("2")
	l.expect(exit.OK)
	l.publish("1")
	srv := l.Layout.Path("/srv")
	mount(t, srv, syscall.MS_BIND)
	t.Cleanup(func() { _ = syscall.Unmount(srv, syscall.MNT_DETACH) })
	mount(t, srv, syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY)
	for range 2 {
		l.engine.converged = nil
		_, err := l.deploy()
		if exit.Code(err) != exit.RolledBack || !strings.Contains(err.Error(), "read-only") ||
			!strings.Contains(diag.HintOf(err), "mount that filesystem for writing") {
			t.Errorf("the deploy ended with %d, %v, hint %q", exit.Code(err), err, diag.HintOf(err))
		}
		if len(l.engine.converged) != 1 || l.engine.last() != "+2" {
			t.Errorf("converged %q, want the current pair, once", l.engine.converged)
		}
		l.links("2", "2", "1")
	}
	if bad := l.inQuarantine(); len(bad) != 0 {
		t.Errorf("the quarantine is %v", bad)
	}
	mount(t, srv, syscall.MS_BIND|syscall.MS_REMOUNT)
	if _, err := l.Unquarantine("1"); err != nil { // the retry is due now
		t.Fatal(err)
	}
	l.expect(exit.OK)
	l.links("1", "1", "2")
}
