package agent_test

import (
	"os"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
)

// TestHookWithHostErrorInItsOutputQuarantinesNothing fails a release by hooks that print an error of the C library, as
// a shell does on a full disk.
func TestHookWithHostErrorInItsOutputQuarantinesNothing(t *testing.T) {
	artifacttest.Long(t)
	for _, printed := range []string{
		"echo: I/O error", "cp: error writing 'x': No space left on device", "touch: cannot touch 'x': Read-only file system",
		"sh: 1: cannot open x: Too many open files", "fork: Cannot allocate memory",
		"E: Failed to fetch x  Temporary failure resolving deb.example.com", "connect: Network is unreachable",
	} {
		t.Run(printed, func(t *testing.T) {
			l := newHookLab(t)
			l.publish("1")
			l.expect(exit.OK)
			l.repo.Release("myapp", "2", "testing",
				artifacttest.Files{"version": "2", "hooks/pre-release.d/10": "#!/bin/sh\necho \"" + printed + "\" >&2; exit 1\n"})
			r := l.expect(exit.RolledBack)
			if r.Fault == nil || r.Fault.Of != report.FaultOfHost || r.Fault.Retry == nil {
				t.Errorf("the fault is %+v", r.Fault)
			}
			if bad := l.inQuarantine(); len(bad) != 0 {
				t.Errorf("the quarantine is %v", bad)
			}
			if !strings.Contains(r.Error, "pre-release hook 10 of myapp 2") {
				t.Errorf("%q does not name the owner of the failed hook", r.Error)
			}
		})
	}
}

// TestHookFailureInBothReleasesIsAHostError removes a file of the host that the hook of each release needs.
func TestHookFailureInBothReleasesIsAHostError(t *testing.T) {
	for _, stage := range []string{"pre-release", "post-release"} {
		t.Run(stage, func(t *testing.T) {
			l := newHookLab(t)
			release := func(version string) {
				l.repo.Release("myapp", version, "testing",
					artifacttest.Files{"version": version, "hooks/" + stage + ".d/10": "#!/bin/sh\nread x < /srv/licence || exit 1\n"})
			}
			licence := l.Layout.Path("/srv/licence")
			if err := os.MkdirAll(l.Layout.Path("/srv"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(licence, []byte("x\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			release("1")
			l.expect(exit.OK)
			if err := os.Remove(licence); err != nil {
				t.Fatal(err)
			}
			release("2")
			r := l.expect(exit.RollbackFailed)
			if r.Fault == nil || r.Fault.Of != report.FaultOfHost {
				t.Errorf("the fault is %+v", r.Fault)
			}
			if bad := l.inQuarantine(); len(bad) != 0 {
				t.Errorf("the quarantine is %v", bad)
			}
			for _, whose := range []string{stage + " hook 10 of myapp 1", stage + " hook 10 of myapp 2"} {
				if strings.Count(r.Error, whose) != 1 {
					t.Errorf("%q does not contain %q exactly once", r.Error, whose)
				}
			}
			if err := os.WriteFile(licence, []byte("x\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			l.expect(exit.OK)
			l.links("2", "2", "1")
		})
	}
}
