package agent_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// expectHostError expects a deploy that ends with an error of the host, and whose rollback fails as well.
func expectHostError(t *testing.T, l *lab) error {
	t.Helper()
	r, err := l.deploy()
	if exit.Code(err) != exit.RollbackFailed {
		t.Fatalf("exit code %d, %v", exit.Code(err), err)
	}
	if got := l.inQuarantine(); len(got) != 0 || r.Fault == nil || r.Fault.Of != report.FaultOfHost ||
		r.Fault.Retry == nil {
		t.Errorf("the quarantine has %v; the fault is %+v", got, r.Fault)
	}
	return err
}

// TestFailureDuringRollbackIsAHostError has units fail in the new and the earlier release for the same reason.
func TestFailureDuringRollbackIsAHostError(t *testing.T) {
	artifacttest.Long(t)
	for name, fail := range map[string]func(s *unit){
		"the user of the unit does not exist": func(s *unit) { s.exits, s.Status, s.User = true, 217, "appuser" },
		"the unit has a known reason":         func(s *unit) { s.refuse, s.why = true, "\nweb: the license has expired" },
	} {
		t.Run(name, func(t *testing.T) {
			l, u := runningUnits(t, "1", "app.service")
			l.app("2")
			l.engine.during = func(state.Request) { fail(u.all["app.service"]) }
			err := expectHostError(t, l)
			if strings.HasPrefix(name, "the user") && !strings.Contains(err.Error(), "217/USER: its user appuser") {
				t.Errorf("the error does not name the user: %v", err)
			}
		})
	}
}

// TestUnitStartFailureIsNotAHostError has both releases fail without a known reason: a new release that crashes is
// quarantined although the earlier one fails as well.
func TestUnitStartFailureIsNotAHostError(t *testing.T) {
	artifacttest.Long(t)
	for name, fail := range map[string]func(s *unit){
		"the job failed":    func(s *unit) { s.refuse = true },
		"the program ended": func(s *unit) { s.exits, s.Status = true, 1 },
	} {
		t.Run(name, func(t *testing.T) {
			l, u := runningUnits(t, "1", "app.service")
			l.app("2")
			l.engine.during = func(state.Request) { fail(u.all["app.service"]) }
			r, err := l.deploy()
			if exit.Code(err) != exit.RollbackFailed {
				t.Fatalf("exit code %d, %v", exit.Code(err), err)
			}
			if r.Fault == nil || r.Fault.Release == nil || r.Fault.Release.Version != "2" || len(l.inQuarantine()) != 1 {
				t.Errorf("the quarantine has %v; the fault is %+v: %v", l.inQuarantine(), r.Fault, err)
			}
		})
	}
}

// TestProbeFailureDuringRollbackIsAHostError has a probe of both releases need a server that ends.
func TestProbeFailureDuringRollbackIsAHostError(t *testing.T) {
	t.Parallel()
	// This address is not used by other tests, which could get the port after it is closed.
	database, err := net.Listen("tcp", "127.66.71.72:0")
	if err != nil {
		t.Fatal(err)
	}
	defer database.Close()
	probe := artifacttest.Files{recipe.Name: "health:\n  interval: 1ms\n  retries: 1\n  probes:\n  - tcp: " +
		database.Addr().String() + "\n"}
	l := newLab(t)
	l.ProbeAnyRoot = true
	l.app("1", probe)
	l.expect(exit.OK)
	l.app("2", probe)
	l.engine.during = func(state.Request) { _ = database.Close() }
	_ = expectHostError(t, l)
}

// TestScriptFailureDuringRollbackIsAHostError has each release bring its own probe of the database.
func TestScriptFailureDuringRollbackIsAHostError(t *testing.T) {
	t.Parallel()
	database := filepath.Join(t.TempDir(), "up")
	if err := os.WriteFile(database, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	probe := artifacttest.Files{
		recipe.Name: "health:\n  interval: 1ms\n  retries: 1\n  probes:\n  - script: bin/check\n",
		"bin/check": "#!/bin/sh\n[ -e " + database + " ] && exit\necho \"$0: the database does not answer\"\nexit 1\n",
	}
	l := newLab(t)
	l.ProbeAnyRoot = true
	l.app("1", probe)
	l.expect(exit.OK)
	l.app("2", probe)
	l.engine.during = func(state.Request) { _ = os.Remove(database) }
	_ = expectHostError(t, l)
}

// TestMaskedUnitIsAHostError has a person mask a unit whose file a state of each release writes.
func TestMaskedUnitIsAHostError(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.Engine = nil
	states := func(version string) artifacttest.Files {
		return artifacttest.Files{"salt/config/states/top.sls": "base:\n  '*': [app]\n",
			"salt/config/states/app.sls": "/etc/systemd/system/web.service:\n  file.managed:\n  - contents: '# " + version +
				"'\n  - makedirs: true\n"}
	}
	l.app("1", states("1"))
	l.expect(exit.OK)
	file := l.Layout.Path("/etc/systemd/system/web.service")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/null", filepath.Clean(file)); err != nil {
		t.Fatal(err)
	}
	l.app("2", states("2"))
	if err := expectHostError(t, l); !strings.Contains(err.Error(), "web.service is masked") ||
		!strings.Contains(err.Error(), "systemctl unmask web.service") {
		t.Errorf("the error does not name the masked unit: %v", err)
	}
}

// TestImmutableFileIsAHostError has a person make a file immutable that a state of the next release writes. A later run
// deploys the release once the file can be changed.
func TestImmutableFileIsAHostError(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this test needs root: it makes a file immutable")
	}
	t.Parallel()
	l := newLab(t)
	l.Engine = nil
	states := func(version string) artifacttest.Files {
		return artifacttest.Files{"salt/config/states/top.sls": "base:\n  '*': [app]\n",
			"salt/config/states/app.sls": "/etc/app.conf:\n  file.managed:\n  - contents: '# " + version +
				"'\n  - makedirs: true\n"}
	}
	l.app("1", states("1"))
	l.expect(exit.OK)
	file := l.Layout.Path("/etc/app.conf")
	if out, err := exec.Command("chattr", "+i", file).CombinedOutput(); err != nil {
		t.Skipf("the filesystem has no immutable files: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("chattr", "-i", file).Run() })
	l.app("2", states("2"))
	r, err := l.deploy()
	if err == nil || !strings.Contains(diag.HintOf(err), "chattr -i /etc/app.conf") {
		t.Errorf("the hint of %v is %q", err, diag.HintOf(err))
	}
	if got := l.inQuarantine(); len(got) != 0 || r.Fault == nil || r.Fault.Of != report.FaultOfHost ||
		r.Fault.Retry == nil {
		t.Errorf("the quarantine has %v; the fault is %+v", got, r.Fault)
	}
	must(t, exec.Command("chattr", "-i", file).Run())
	l.expect(exit.OK)
	if got, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(got), "# 2") {
		t.Errorf("the file is %q, %v", got, err)
	}
}
