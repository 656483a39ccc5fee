//go:build hosts

package hosttest_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/packaging/hosttest/lab"
)

// later makes a package of a later version, whose default configuration has changed.
func later(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "later")
	run(t, "dpkg-deb", "-R", deb(t), dir)
	run(t, "sed", "-i", "s/^Version: .*/Version: 99.0/", dir+"/DEBIAN/control")
	run(t, "sed", "-i", "1i # Version 99 explains more.", dir+"/etc/corpus/agent.yaml")
	file := dir + ".deb"
	run(t, "dpkg-deb", "-Znone", "--root-owner-group", "-b", dir, file)
	return file
}

// timer is what systemd says of the timer: whether it is enabled, and whether it runs.
func timer(h *lab.Host) string {
	enabled := strings.TrimSpace(h.Run("systemctl", "is-enabled", "corpus-agent.timer").Out)
	active := strings.TrimSpace(h.Run("systemctl", "is-active", "corpus-agent.timer").Out)
	return enabled + " " + active
}

func TestPackageLife(t *testing.T) {
	for _, suite := range lab.Suites() {
		t.Run(suite, func(t *testing.T) {
			h := lab.Boot(t, lab.Options{Base: lab.Standard(suite), Hostname: "myapp-testing-local1-1"})
			install(t, h)
			if got := timer(h); got != "enabled active" {
				t.Errorf("after the installation the timer is %s", got)
			}
			h.Sh("systemctl start corpus-agent.service")
			if ran := h.Sh("systemctl show -p ConditionResult -p ExecMainStartTimestampMonotonic --value corpus-agent.service | tr '\\n' ' '"); strings.Contains(ran, "yes") {
				t.Errorf("the service ran on a host that is not bootstrapped: %s", ran)
			}
			if failed := h.Sh("systemctl list-units --failed --plain --no-legend"); failed != "" {
				t.Errorf("units failed: %s", failed)
			}
			for _, command := range []string{"corpus --version", "corpus-agent version", "corpus-agent config check"} {
				h.Sh(command)
			}
			if r := h.Run("sh", "-c", "systemd-analyze verify --man=no corpus-agent.service corpus-agent.timer"); r.Code != 0 || strings.Contains(r.Err, "corpus-agent") {
				t.Errorf("systemd-analyze verify: %s", r.Err)
			}

			h.Sh("echo 'service: mine' >> /etc/corpus/agent.yaml; mkdir -p /var/lib/corpus/trust /srv/projects/mine; touch /var/lib/corpus/ledger.json")
			h.Copy(later(t), "/root/later.deb")
			h.Sh("dpkg --force-confold -i /root/later.deb")
			if !strings.Contains(h.Read("/etc/corpus/agent.yaml"), "service: mine") {
				t.Error("an upgrade lost the administrator's configuration")
			}
			if got := timer(h); got != "enabled active" {
				t.Errorf("after an upgrade the timer is %s", got)
			}
			h.Sh("systemctl disable --now corpus-agent.timer; dpkg -i --force-confold --force-downgrade /root/corpus-agent.deb")
			if got := timer(h); got != "disabled inactive" {
				t.Errorf("after an upgrade the timer is %s, and its administrator turned it off", got)
			}
			h.Sh("systemctl enable --now corpus-agent.timer; apt-get remove -y corpus-agent")
			for _, path := range []string{"/etc/corpus/agent.yaml", "/var/lib/corpus/ledger.json", "/srv/projects/mine"} {
				if !h.Exists(path) {
					t.Errorf("a removal took %s with it", path)
				}
			}
			if active := strings.TrimSpace(h.Run("systemctl", "is-active", "corpus-agent.timer").Out); active == "active" {
				t.Error("the timer outlives its package")
			}
			install(t, h)
			if got := timer(h); got != "enabled active" {
				t.Errorf("after it came back the timer is %s", got)
			}
			h.Sh("apt-get purge -y corpus-agent")
			for _, path := range []string{"/etc/corpus", "/var/lib/corpus", "/usr/bin/corpus-agent", "/etc/systemd/system/timers.target.wants/corpus-agent.timer"} {
				if h.Exists(path) {
					t.Errorf("a purge leaves %s", path)
				}
			}
			if !h.Exists("/srv/projects/mine") {
				t.Error("a purge took the releases, which are the operator's")
			}
		})
	}
}

// TestPresetDecides installs on a host whose presets turn everything off.
func TestPresetDecides(t *testing.T) {
	h := lab.Boot(t, lab.Options{Before: func(h *lab.Host) { h.Write("/etc/systemd/system-preset/00-lab.preset", "disable *\n") }})
	install(t, h)
	if got := timer(h); got != "disabled inactive" {
		t.Errorf("the timer is %s", got)
	}
}

// TestLintian holds the package to Debian's rules, where Debian's checker is at hand.
func TestLintian(t *testing.T) {
	run(t, "sh", "-c", "command -v lintian >/dev/null || apt-get install -y -q --no-install-recommends lintian")
	out := run(t, "lintian", "--allow-root", "--fail-on", "error,warning", deb(t))
	if strings.TrimSpace(out) != "" {
		t.Errorf("lintian says\n%s", out)
	}
}
