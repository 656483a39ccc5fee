//go:build hosts

package hosttest_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/packaging/hosttest/lab"
)

// laterPackage makes a package of a later version, with a changed default configuration.
func laterPackage(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "later")
	run(t, "dpkg-deb", "-R", deb(t), dir)
	run(t, "sed", "-i", "s/^Version: .*/Version: 99.0/", dir+"/DEBIAN/control")
	run(t, "sed", "-i", "1i # Version 99 explains more.", dir+"/usr/share/corpus-agent/agent.yaml")
	file := dir + ".deb"
	run(t, "dpkg-deb", "-Znone", "--root-owner-group", "-b", dir, file)
	return file
}

// timer returns the state of the timer in systemd: whether it is enabled, and whether it runs.
func timer(h *lab.Host) string {
	enabled := strings.TrimSpace(h.Run("systemctl", "is-enabled", "corpus-agent.timer").Out)
	active := strings.TrimSpace(h.Run("systemctl", "is-active", "corpus-agent.timer").Out)
	return enabled + " " + active
}

func TestPackageLifecycle(t *testing.T) {
	for _, suite := range lab.Suites() {
		t.Run(suite, func(t *testing.T) {
			h := lab.Boot(t, lab.Options{Base: lab.Standard(suite), Hostname: "myapp-testing-local1-1"})
			install(t, h)
			if got := timer(h); got != "enabled active" {
				t.Errorf("after the installation the timer is %s", got)
			}
			h.Sh("systemctl start corpus-agent.service")
			if ran := h.Sh(
				"systemctl show -p ConditionResult -p ExecMainStartTimestampMonotonic --value corpus-agent.service | tr " +
					"'\\n' ' '"); strings.Contains(ran, "yes") {
				t.Errorf("the service ran on a host that is not bootstrapped: %s", ran)
			}
			if failed := h.Sh("systemctl list-units --failed --plain --no-legend"); failed != "" {
				t.Errorf("units failed: %s", failed)
			}
			for _, command := range []string{"corpus-agent version", "corpus-agent config check"} {
				h.Sh(command)
			}
			if r := h.Run("sh", "-c", "systemd-analyze verify --man=no corpus-agent.service corpus-agent.timer"); r.Code != 0 ||
				strings.Contains(r.Err, "corpus-agent") {
				t.Errorf("systemd-analyze verify: %s", r.Err)
			}

			h.Sh("echo 'service: mine' >> /etc/corpus/agent.yaml; mkdir -p /var/lib/corpus/trust /srv/projects/mine; touch " +
				"/var/lib/corpus/ledger.json")
			h.Copy(laterPackage(t), "/root/later.deb")
			h.Sh("dpkg -i /root/later.deb </dev/null")
			if !strings.Contains(h.Read("/etc/corpus/agent.yaml"), "service: mine") {
				t.Error("an upgrade lost the administrator's configuration")
			}
			if got := timer(h); got != "enabled active" {
				t.Errorf("after an upgrade the timer is %s", got)
			}
			h.Sh("systemctl stop corpus-agent.timer; dpkg -i --force-downgrade /root/corpus-agent.deb")
			if got := timer(h); got != "enabled inactive" {
				t.Errorf("after an upgrade the timer is %s, although its administrator stopped it", got)
			}
			h.Sh("systemctl disable --now corpus-agent.timer; dpkg -i /root/later.deb")
			if got := timer(h); got != "disabled inactive" {
				t.Errorf("after an upgrade the timer is %s, although its administrator disabled it", got)
			}
			h.Write("/etc/corpus/environment", "MINIO_SECRET_KEY=hidden\n")
			h.Sh("apt-get remove -y corpus-agent; apt-get install -y /root/corpus-agent.deb")
			if got := timer(h); got != "disabled inactive" {
				t.Errorf("after the package was installed again, the timer is %s, but was disabled before", got)
			}
			h.Sh("systemctl enable --now corpus-agent.timer; apt-get remove -y corpus-agent")
			for _, path := range []string{"/etc/corpus/agent.yaml", "/var/lib/corpus/ledger.json", "/srv/projects/mine"} {
				if !h.Exists(path) {
					t.Errorf("a removal of the package removed %s", path)
				}
			}
			if active := strings.TrimSpace(h.Run("systemctl", "is-active", "corpus-agent.timer").Out); active == "active" {
				t.Error("the timer remains after the removal of its package")
			}
			install(t, h)
			if got := timer(h); got != "enabled active" {
				t.Errorf("after the package was installed again, the timer is %s", got)
			}
			if output := h.Sh("apt-get purge -y corpus-agent"); !strings.Contains(output, "/etc/corpus/environment stays") ||
				!strings.Contains(output, "/srv/projects stays") {
				t.Errorf("a purge prints\n%s", output)
			}
			if !h.Exists("/etc/corpus/environment") {
				t.Error("a purge removed credentials that the package did not install")
			}
			for _, path := range []string{"/etc/corpus/agent.yaml", "/var/lib/corpus", "/usr/bin/corpus-agent",
				"/etc/systemd/system/timers.target.wants/corpus-agent.timer"} {
				if h.Exists(path) {
					t.Errorf("a purge leaves %s", path)
				}
			}
			if !h.Exists("/srv/projects/mine") {
				t.Error("a purge removed the releases of the operator")
			}
		})
	}
}

// TestConfigurationBeforeThePackage installs the package after cloud-init's write_files has written the configuration,
// as at a first boot without a user to answer questions.
func TestConfigurationBeforeThePackage(t *testing.T) {
	for name, command := range map[string]string{
		"dpkg": "dpkg -i /root/corpus-agent.deb </dev/null", "apt": "apt-get install -y /root/corpus-agent.deb </dev/null",
	} {
		t.Run(name, func(t *testing.T) {
			h := lab.Boot(t, lab.Options{Hostname: "myapp-testing-local1-1"})
			h.Write("/etc/corpus/agent.yaml", "store: https://example.com\n")
			h.Copy(deb(t), "/root/corpus-agent.deb")
			if r := h.Run("sh", "-c", command); r.Code != 0 {
				t.Fatalf("exit code %d: %s%s", r.Code, r.Out, r.Err)
			}
			h.Copy(laterPackage(t), "/root/later.deb")
			if r := h.Run("sh", "-c", "dpkg -i /root/later.deb </dev/null"); r.Code != 0 {
				t.Fatalf("the upgrade: exit code %d: %s%s", r.Code, r.Out, r.Err)
			}
			if got := h.Read("/etc/corpus/agent.yaml"); got != "store: https://example.com\n" {
				t.Errorf("the configuration is now %q", got)
			}
			h.Sh("corpus-agent config check")
		})
	}
}

// TestMaskedServiceIsNotRun masks the agent's service, which --now must not circumvent.
func TestMaskedServiceIsNotRun(t *testing.T) {
	n, s := lab.NewNetwork(t), newStore(t)
	s.publish("slow", "1", "testing", slow(t, "1"))
	server := s.serve(n)
	h := lab.Boot(t, lab.Options{Hostname: "slow-testing-local1-1", Network: n, Address: "172.31.0.11"})
	s.reach(h, server)
	install(t, h)
	h.Sh("systemctl disable --now corpus-agent.timer")
	s.start(h)
	s.publish("slow", "2", "testing", slow(t, "2"))
	h.Sh("systemctl mask corpus-agent.service")
	if r := h.Run("corpus-agent", "deploy", "--now"); r.Code != 2 ||
		!strings.Contains(r.Err, "corpus-agent.service is masked") || !strings.Contains(r.Err, "hint:") {
		t.Errorf("exit code %d: %s%s", r.Code, r.Out, r.Err)
	}
	if got := h.Sh("cat /etc/slow/after"); got != "1" {
		t.Errorf("the host has version %q", got)
	}
	h.Sh("systemctl unmask corpus-agent.service")
	if r := h.Run("corpus-agent", "deploy", "--now"); r.Code != 0 {
		t.Errorf("unmasked: exit code %d: %s%s", r.Code, r.Out, r.Err)
	}
}

// TestTimerFollowsPreset installs on a host whose presets disable all units.
func TestTimerFollowsPreset(t *testing.T) {
	h := lab.Boot(t, lab.Options{Before: func(h *lab.Host) {
		h.Write("/etc/systemd/system-preset/00-lab.preset", "disable *\n")
	}})
	install(t, h)
	if got := timer(h); got != "disabled inactive" {
		t.Errorf("the timer is %s", got)
	}
}

// TestLintian checks the packages against Debian's rules, if lintian is installed.
func TestLintian(t *testing.T) {
	run(t, "sh", "-c", "command -v lintian >/dev/null || apt-get install -y -q --no-install-recommends lintian")
	out := run(t, "lintian", "--allow-root", "--fail-on", "error,warning", deb(t), built(t, "corpus"))
	if strings.TrimSpace(out) != "" {
		t.Errorf("lintian prints\n%s", out)
	}
}
