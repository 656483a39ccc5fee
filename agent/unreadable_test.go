package agent_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
)

// unreadable replaces a path by a link with an invalid target, so that following it is an error other than "does not
// exist". undo restores the path.
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
		t.Errorf("a run with an unreadable release ended with %v", err)
	}
	if text := strings.Join(report.Notes, "\n"); strings.Contains(text, "gone") || strings.Contains(text, "set aside") {
		t.Errorf("the report calls the release absent:\n%s", text)
	}
	if report.Fault != nil {
		t.Errorf("the fault is %+v", report.Fault)
	}
	undo()
	l.expect(exit.OK)
	l.links("1", "1", "")
}

func TestUnreadableMachineIDIsNotAnotherMachine(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.machine("a")
	l.publish("1")
	l.expect(exit.OK)
	undo := l.unreadable(l.Layout.Path("/etc/machine-id"))
	l.named("other-testing-local1-1")
	if _, err := l.deploy(); err == nil || !strings.Contains(err.Error(), "machine-id") {
		t.Errorf("a run with another hostname and an unreadable machine ID ended with %v", err)
	}
	if target, err := os.Readlink(l.Layout.ServiceLink()); err != nil || filepath.Base(target) != "myapp" {
		t.Errorf("the link leads to %s, %v", target, err)
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
		t.Errorf("a run with an unreadable project ended with %v", err)
	}
	undo()
	l.expect(exit.OK)
}
