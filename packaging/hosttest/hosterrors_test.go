//go:build hosts

package hosttest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/packaging/hosttest/lab"
)

// applying returns a release with only these states.
func applying(t *testing.T, sls string) string {
	return tree(t, map[string]string{"salt/config/states/top.sls": "base:\n  '*':\n    - it\n",
		"salt/config/states/it.sls": sls})
}

const nothing = "/etc/it:\n  file.managed:\n    - contents: it\n"

// newSimpleHost returns a host that runs version 1 of a service with one simple state.
func newSimpleHost(t *testing.T) (*store, *lab.Host) {
	t.Helper()
	n, s := lab.NewNetwork(t), newStore(t)
	s.publish("blame", "1", "testing", applying(t, nothing))
	server := s.serve(n)
	h := lab.Boot(t, lab.Options{Hostname: "blame-testing-local1-1", Network: n, Address: "172.31.0.11"})
	s.reach(h, server)
	h.Sh("systemctl mask corpus-agent.timer")
	install(t, h)
	agent(t, h, "deploy", "--store", storeURL, "--trust-root", "/root/root.json").converged(t)
	return s, h
}

// unitRun runs the agent's unit as the timer does, and returns the report and the duration.
func unitRun(t *testing.T, h *lab.Host) (report, time.Duration) {
	t.Helper()
	started := time.Now()
	h.Run("systemctl", "start", "corpus-agent.service")
	lab.Eventually(t, 5*time.Minute, "the run ends", func() bool {
		return h.Run("systemctl", "is-active", "corpus-agent.service").Out != "activating\n"
	})
	return history(t, h)[0], time.Since(started)
}

// starts returns how often systemd has started the agent's unit.
func starts(h *lab.Host) int {
	const starting = "7d4958e842da4a758f6c1cdc7b36dcc5" // the ID of systemd's message
	return strings.Count(h.Sh("journalctl --sync; journalctl -o cat UNIT=corpus-agent.service MESSAGE_ID="+starting+
		" | cat"), "Starting")
}

// TestStatesThatStopTheAgent runs states that stop and restart the agent's unit, and that hang.
func TestStatesThatStopTheAgent(t *testing.T) {
	s, h := newSimpleHost(t)
	h.Write("/etc/corpus/agent.yaml", h.Read("/etc/corpus/agent.yaml")+"\nconverge:\n  stop_timeout: 3s\n  timeout: 15s\n")

	s.publish("blame", "2", "testing", applying(t, "stop:\n  cmd.run:\n    - name: systemctl stop corpus-agent\n"))
	for i := range 3 {
		r, took := unitRun(t, h)
		if r.Outcome != "interrupted" || took > 30*time.Second {
			t.Fatalf("run %d with a state that stops the agent: %s after %s: %s", i, r.Outcome, took, r.Error)
		}
	}
	if r, _ := unitRun(t, h); r.Outcome != "converged" || len(statusOf(t, h).Quarantined) != 1 {
		t.Errorf("after three such runs: %s, %v, quarantined %s", r.Outcome, r.Notes, statusOf(t, h).Quarantined)
	}

	s.publish("blame", "3", "testing", applying(t, `
/etc/corpus/agent.yaml:
  file.append:
    - text: "# by a state"
corpus-agent:
  service.running:
    - watch:
      - file: /etc/corpus/agent.yaml
`))
	before := starts(h)
	if r, took := unitRun(t, h); took > time.Minute || r.Outcome != "converged" {
		t.Errorf("a watch on agent.yaml: %s after %s: %s", r.Outcome, took, r.Error+r.failures())
	}
	lab.Eventually(t, time.Minute, "the unit is restarted after the run", func() bool { return starts(h) == before+2 })
	lab.Eventually(t, time.Minute, "the run that the restart began ends", func() bool {
		return h.Run("systemctl", "is-active", "corpus-agent.service").Out == "inactive\n"
	})
	if v := statusOf(t, h).Deployed.Service.Version; v != "3" || starts(h) != before+2 {
		t.Errorf("%s is deployed, and the unit was started %d times in place of 2", v, starts(h)-before)
	}

	s.publish("blame", "4", "testing", applying(t, "hang:\n  cmd.run:\n    - name: touch /run/hangs; sleep 3600\n"))
	lab.Eventually(t, 2*time.Minute, "the state hangs", func() bool {
		h.Run("systemctl", "start", "--no-block", "corpus-agent.service") // a run of the restart may be active
		return h.Exists("/run/hangs")
	})
	started := time.Now()
	h.Sh("systemctl stop corpus-agent.service")
	if took, r := time.Since(started), history(t, h)[0]; took > 40*time.Second || r.Outcome != "interrupted" ||
		len(statusOf(t, h).Quarantined) != 1 {
		t.Errorf("SIGTERM with a hanging state: %s after %s: %s", r.Outcome, took, r.Error)
	}
	if r, took := unitRun(t, h); r.Outcome != "rolled back" || took > 60*time.Second ||
		!strings.Contains(r.Error, "cmd.run of hang") || len(statusOf(t, h).Quarantined) != 2 {
		t.Errorf("a hanging state and converge.timeout: %s after %s: %s", r.Outcome, took, r.Error)
	}
}

// TestAnotherPackageManagerAtWork has another process hold dpkg's lock, with dpkg's database in an intermediate state.
func TestAnotherPackageManagerAtWork(t *testing.T) {
	s, h := newSimpleHost(t)
	caseRepository(t, h)
	h.Write("/root/busy", `import fcntl, os, shutil, time
files = [open(f, "w") for f in ("/var/lib/dpkg/lock-frontend", "/var/lib/dpkg/lock")]
for f in files:
    fcntl.lockf(f, fcntl.LOCK_EX)
os.makedirs("/var/lib/dpkg/updates", exist_ok=True)
open("/var/lib/dpkg/updates/0001", "w").write("Package: corpus-other\nStatus: install ok half-installed\nVersion: 1\nArchitecture: all\nMaintainer: a <a@example.com>\nDescription: x\n")
open("/run/busy", "w")
time.sleep(20)
os.remove("/var/lib/dpkg/updates/0001")
`)
	h.Sh("systemd-run -q --unit=busy python3 /root/busy")
	lab.Eventually(t, time.Minute, "another process holds the lock", func() bool { return h.Exists("/run/busy") })
	s.publish("blame", "2", "testing", applying(t, "corpus-one:\n  pkg.installed: []\n"))
	started := time.Now()
	agent(t, h, "deploy").converged(t)
	if took := time.Since(started); took < 5*time.Second || len(statusOf(t, h).Quarantined) != 0 {
		t.Errorf("the run took %s, the quarantine is %s", took, statusOf(t, h).Quarantined)
	}
	if got := h.Sh("dpkg -s corpus-one | grep Status:"); !strings.Contains(got, "install ok installed") {
		t.Errorf("corpus-one is %q", got)
	}
}

// TestShutdownDuringAPackageInstallation powers the host off while the script of a package runs, during a run of the
// unit.
func TestShutdownDuringAPackageInstallation(t *testing.T) {
	s, h := newSimpleHost(t)
	dir := t.TempDir()
	run(t, "dpkg-deb", "-Znone", "--root-owner-group", "-b", tree(t, map[string]string{
		"DEBIAN/control": "Package: corpus-slow\nVersion: 1\nArchitecture: all\nMaintainer: A <a@example.com>\n" +
			"Description: a package\n",
		"DEBIAN/postinst": "#!/bin/sh\ntouch /etc/postinst-runs\nsleep 8\ntouch /etc/postinst-done\n",
	}), dir)
	h.CopyTree(dir, "/opt/slow")
	s.publish("blame", "2", "testing",
		applying(t, "corpus-slow:\n  pkg.installed:\n    - sources:\n      - corpus-slow: /opt/slow/corpus-slow_1_all.deb\n"))
	h.Sh("systemctl start --no-block corpus-agent.service")
	lab.Eventually(t, time.Minute, "the package is being installed", func() bool { return h.Exists("/etc/postinst-runs") })
	h.Stop()
	h.Start()
	if !h.Exists("/etc/postinst-done") {
		t.Error("the shutdown did not wait for the package manager")
	}
	if r := history(t, h)[0]; r.Outcome != "interrupted" || r.Exit != 130 {
		t.Errorf("the run is %q, exit code %d: %s", r.Outcome, r.Exit, r.Error)
	}
	if bad := statusOf(t, h).Quarantined; len(bad) != 0 {
		t.Errorf("the quarantine is %s", bad)
	}
	agent(t, h, "deploy").converged(t)
	if v := statusOf(t, h).Deployed.Service.Version; v != "2" {
		t.Errorf("the current version is %s", v)
	}
}

// TestAStateThatRebootsTheHost deploys states that shut the host down.
func TestAStateThatRebootsTheHost(t *testing.T) {
	s, h := newSimpleHost(t)
	s.publish("blame", "2", "testing", applying(t, "reboot:\n  cmd.run:\n    - name: systemctl poweroff; sleep 60\n"))
	for range 3 {
		h.Sh("systemctl start --no-block corpus-agent.service")
		h.PoweredOff()
		h.Start()
		if r := history(t, h)[0]; r.Outcome != "interrupted" {
			t.Fatalf("the run is %q: %s", r.Outcome, r.Error)
		}
	}
	if r, _ := unitRun(t, h); r.Outcome != "converged" || len(statusOf(t, h).Quarantined) != 1 ||
		statusOf(t, h).Deployed.Service.Version != "1" {
		t.Errorf("after three reboots the run is %q: %v", r.Outcome, r.Notes)
	}
}
