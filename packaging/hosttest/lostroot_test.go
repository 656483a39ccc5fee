//go:build hosts

package hosttest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/packaging/hosttest/lab"
)

// exitOfUnit starts the unit as the timer does, and returns the exit code of its program.
func exitOfUnit(h *lab.Host) string {
	h.Run("systemctl", "start", "corpus-agent.service")
	return h.Sh("systemctl show -p ExecMainStatus --value corpus-agent.service")
}

// TestTimerRunsWithoutARootOfTrust removes the root of trust, and then all files of the agent.
func TestTimerRunsWithoutARootOfTrust(t *testing.T) {
	_, h := newSimpleHost(t)
	for _, lose := range []string{"mv /var/lib/corpus/trust/root.json /root/saved.json", "rm -rf /var/lib/corpus",
		"rm -rf /var/lib/corpus /srv/projects/.ledger.json"} {
		h.Sh(lose + "; echo drift > /etc/it")
		if got := exitOfUnit(h); got != "4" {
			t.Errorf("after %q the unit ended with %s", lose, got)
		}
		if got := h.Read("/etc/it"); got != "it\n" {
			t.Errorf("after %q the host has %q", lose, got)
		}
		if got := h.Sh("corpus-agent status; corpus-agent why"); strings.Count(got, "--trust-root") < 2 {
			t.Errorf("after %q status and why print: %s", lose, got)
		}
	}
}

// TestUnitAfterTheAgent deploys a release whose unit is ordered after the agent's.
func TestUnitAfterTheAgent(t *testing.T) {
	s, h := newSimpleHost(t)
	s.publish("blame", "2", "testing", applying(t, `
/etc/systemd/system/late.service:
  file.managed:
    - contents: |
        [Unit]
        After=corpus-agent.service
        [Service]
        ExecStart=/bin/sleep infinity
late:
  service.running: []
`))
	r, took := unitRun(t, h)
	if r.Outcome != "converged" || took > time.Minute {
		t.Fatalf("%s after %s: %s", r.Outcome, took, r.Error)
	}
	if !strings.Contains(strings.Join(r.Notes, "\n"), "late.service was started without waiting") {
		t.Errorf("notes are %q", r.Notes)
	}
}

// TestCommandsThatRestartAUnitAfterTheAgent checks that the commands wait for that unit, whose job systemd queues until
// the end of the run.
func TestCommandsThatRestartAUnitAfterTheAgent(t *testing.T) {
	s, h := newSimpleHost(t)
	for _, name := range []string{"one", "two"} {
		h.Write("/etc/systemd/system/"+name+".service",
			"[Unit]\nAfter=corpus-agent.service\n[Service]\nExecStart=/bin/sleep infinity\n")
	}
	h.Sh("systemctl daemon-reload; systemctl start one.service")
	dir := applying(t, "two:\n  cmd.run:\n    - name: systemctl start two\n")
	if err := os.MkdirAll(filepath.Join(dir, "hooks/post-release.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "hooks/post-release.d/10-one"),
		[]byte("#!/bin/sh\nexec systemctl restart one.service\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.publish("blame", "2", "testing", dir)
	r, took := unitRun(t, h)
	if r.Outcome != "converged" || took > time.Minute {
		t.Fatalf("%s after %s: %s", r.Outcome, took, r.Error)
	}
	for _, name := range []string{"one", "two"} {
		if h.Run("systemctl", "is-active", name).Code != 0 ||
			!strings.Contains(strings.Join(r.Notes, "\n"), name+".service was started without waiting") {
			t.Errorf("%s: notes are %q", name, r.Notes)
		}
	}
}

// TestStatusShowsAUnitThatCannotWrite uses a drop-in that prevents writes of the unit, but not of a shell.
func TestStatusShowsAUnitThatCannotWrite(t *testing.T) {
	_, h := newSimpleHost(t)
	h.Write("/etc/systemd/system/corpus-agent.service.d/strict.conf",
		"[Service]\nProtectSystem=strict\nReadWritePaths=/srv\n")
	// systemd unloads a unit that ended successfully and that no other unit refers to, as the timer does.
	h.Sh("systemctl unmask corpus-agent.timer; systemctl daemon-reload; systemctl start --no-block corpus-agent.timer")
	time.Sleep(2 * time.Second)           // a run within a second after another may have reused that run's report
	if got := exitOfUnit(h); got != "0" { // nothing has changed, so the run would only write its report
		t.Errorf("the unit ended with %s", got)
	}
	for _, command := range []string{"status", "why"} {
		if got := h.Sh("corpus-agent " + command); !strings.Contains(got, "could keep no report") {
			t.Errorf("%s prints: %s", command, got)
		}
	}
	h.Sh("rm /etc/systemd/system/corpus-agent.service.d/strict.conf; systemctl daemon-reload")
	if got := exitOfUnit(h); got != "0" {
		t.Errorf("the unit ends with %s", got)
	}
	if got := h.Sh("corpus-agent status"); strings.Contains(got, "could keep no report") {
		t.Errorf("status prints: %s", got)
	}
}
