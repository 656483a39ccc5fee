package agent_test

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// A release whose hook cannot be started because /srv is mounted noexec is not quarantined. The error names the mount
// and the option.
func TestNoexecMountIsAHostError(t *testing.T) {
	if !ownMounts(t) {
		return
	}
	l := newHookLab(t)
	l.publish("1")
	l.expect(exit.OK)
	srv := l.Layout.Path("/srv")
	mount(t, srv, syscall.MS_BIND)
	t.Cleanup(func() { _ = syscall.Unmount(srv, syscall.MNT_DETACH) })
	mount(t, srv, syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_NOEXEC)
	l.repo.Release("myapp", "2", "testing", artifacttest.Files{"version": "2", "hooks/post-release.d/10": "#!/bin/sh\n"})
	r, err := l.deploy()
	if exit.Code(err) != exit.RolledBack || !strings.Contains(err.Error(), "/srv is mounted with the option noexec") ||
		!strings.Contains(diag.HintOf(err), "mount -o remount,exec /srv,") {
		t.Fatalf("the deploy ended with %v, hint %q", err, diag.HintOf(err))
	}
	if bad := l.inQuarantine(); len(bad) != 0 || r.Fault == nil || r.Fault.Of != report.FaultOfHost {
		t.Errorf("the quarantine is %v, the fault is %+v", bad, r.Fault)
	}
	mount(t, srv, syscall.MS_BIND|syscall.MS_REMOUNT)
	l.expect(exit.OK)
	l.links("2", "2", "1")
}

// The same filesystem affects the rollback: the hooks of the earlier release cannot be started either. The host still
// returns to that release, and `why` has the first failure.
func TestNoexecDuringRollback(t *testing.T) {
	if !ownMounts(t) {
		return
	}
	l := newHookLab(t)
	const hook = "#!/bin/sh\n"
	l.repo.Release("myapp", "1", "testing", artifacttest.Files{"version": "1", "hooks/pre-release.d/10": hook,
		"hooks/post-release.d/10": hook})
	l.expect(exit.OK)
	srv := l.Layout.Path("/srv")
	mount(t, srv, syscall.MS_BIND)
	t.Cleanup(func() { _ = syscall.Unmount(srv, syscall.MNT_DETACH) })
	mount(t, srv, syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_NOEXEC)
	l.repo.Release("myapp", "2", "testing", artifacttest.Files{"version": "2", "hooks/pre-release.d/10": hook,
		"hooks/post-release.d/10": hook})
	r, err := l.deploy()
	if exit.Code(err) != exit.RolledBack || !strings.Contains(diag.HintOf(err), "mount -o remount,exec /srv,") {
		t.Fatalf("the deploy ended with %v, hint %q", err, diag.HintOf(err))
	}
	noted(t, r, "could not be started either")
	w, err := l.Why()
	if err != nil || !strings.Contains(w.Failed, "pre-release hook 10 of myapp 2") ||
		!strings.Contains(w.Failed, "mounted with the option noexec") {
		t.Errorf("why has the first failure %q, %v", w.Failed, err)
	}
	mount(t, srv, syscall.MS_BIND|syscall.MS_REMOUNT)
	l.expect(exit.OK)
	l.links("2", "2", "1")
}

// mount mounts a directory on itself, or changes the options of that mount.
func mount(t *testing.T, dir string, flags uintptr) {
	t.Helper()
	if err := syscall.Mount(dir, dir, "", flags, ""); err != nil {
		t.Fatal(err)
	}
}

// ownMounts runs a test again in a new mount namespace, and reports whether this is the second run.
func ownMounts(t *testing.T) bool {
	t.Helper()
	const apart = "CORPUS_TEST_APART"
	if os.Getenv(apart) == t.Name() {
		return true
	}
	if os.Geteuid() != 0 {
		t.Skip("this test needs root: it makes a mount namespace")
	}
	cmd := exec.Command(os.Args[0], "-test.v", "-test.count=1", "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), apart+"="+t.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	switch {
	case strings.Contains(string(out), "operation not permitted") && !strings.Contains(string(out), "=== RUN"):
		t.Skipf("this machine refuses a mount namespace: %v", err)
	case strings.Contains(string(out), "--- SKIP: "+t.Name()):
		t.Skipf("%s", out)
	case err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()):
		t.Errorf("in the namespace: %v\n%s", err, out)
	}
	return false
}
