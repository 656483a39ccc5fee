package agent_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
)

// unreadable puts a link in the place of a path that leads to no path that a kernel accepts, so that following it is an
// error which does not say that something is absent. undo puts back what was there.
func (l *lab) unreadable(path string) (undo func()) {
	l.t.Helper()
	must(l.t, os.Rename(path, path+".kept"))
	must(l.t, os.Symlink(strings.Repeat("x", 300), path))
	return func() { must(l.t, errors.Join(os.Remove(path), os.Rename(path+".kept", path))) }
}

func TestUnreadableReleaseIsNotAbsent(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	release := l.Layout.Project("myapp").Release(l.dir("1"))
	undo := l.unreadable(release)
	report, err := l.deploy()
	if err == nil || !strings.Contains(err.Error(), release) || !strings.Contains(err.Error(), "too long") {
		t.Errorf("a run over a release that it cannot read ended with %v", err)
	}
	if text := strings.Join(report.Notes, "\n"); strings.Contains(text, "gone") || strings.Contains(text, "set aside") {
		t.Errorf("the report says that it is absent:\n%s", text)
	}
	if report.Fault != nil {
		t.Errorf("the fault is %+v", report.Fault)
	}
	undo()
	l.expect(exit.OK)
	l.links("1", "1", "")
}

func TestAMachineIDThatCannotBeReadMakesNoOtherMachine(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.machine("a")
	l.publish("1")
	l.expect(exit.OK)
	undo := l.unreadable(l.Layout.Path("/etc/machine-id"))
	l.named("other-testing-local1-1")
	if _, err := l.deploy(); err == nil || !strings.Contains(err.Error(), "machine-id") {
		t.Errorf("a host with another name and a machine ID that it cannot read ended with %v", err)
	}
	if target, err := os.Readlink(l.Layout.ServiceLink()); err != nil || filepath.Base(target) != "myapp" {
		t.Errorf("the host is %s, %v", target, err)
	}
	undo()
	l.named("myapp-testing-local1-1")
	l.expect(exit.OK)
}

func TestUnreadableProjectFailsTheRun(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	undo := l.unreadable(l.Layout.Project("myapp").Dir)
	if _, err := l.deploy(); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("a run over a project that it cannot read ended with %v", err)
	}
	undo()
	l.expect(exit.OK)
}
