//go:build hosts

package hosttest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/packaging/hosttest/lab"
)

// agentPackage makes a package of the agent with a version. If program is set, the package has that program.
func agentPackage(t *testing.T, version, program string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "agent")
	run(t, "dpkg-deb", "-R", deb(t), dir)
	run(t, "sed", "-i", "s/^Version: .*/Version: "+version+"/", dir+"/DEBIAN/control")
	if program != "" {
		if err := os.WriteFile(dir+"/usr/bin/corpus-agent", []byte(program), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	run(t, "dpkg-deb", "-Znone", "--root-owner-group", "-b", dir, dir+".deb")
	return dir + ".deb"
}

// installing returns a base whose states install a package of the agent.
func installing(t *testing.T, pkg string) string {
	t.Helper()
	dir := tree(t,
		map[string]string{"states/agent.sls": "corpus-agent:\n  pkg.installed:\n    - sources:\n" +
			"      - corpus-agent: salt://agent.deb\n"})
	run(t, "cp", pkg, filepath.Join(dir, "states", "agent.deb"))
	return dir
}

// own returns whether a host's agent program is the one that was installed first, and the state of its timer.
func own(h *lab.Host) string {
	same := h.Run("cmp", "/root/first-agent", "/usr/bin/corpus-agent")
	return fmt.Sprintf("cmp %d, %s", same.Code, timer(h))
}

// installed returns the version of the agent's package.
func installed(h *lab.Host) string { return h.Sh("dpkg -s corpus-agent | sed -n 's/^Version: //p'") }

// TestReleasesWithBrokenAgentsAreRolledBack has base install agents that do not work, and remove the units that start
// them. The host deploys the next release each time.
func TestReleasesWithBrokenAgentsAreRolledBack(t *testing.T) {
	n, s := lab.NewNetwork(t), newStore(t)
	base := func(states string) string { return tree(t, map[string]string{"states/agent.sls": states}) }
	s.publish("base", "1", "production", base("/etc/motd:\n  file.managed:\n    - contents: base 1\n"))
	s.publish("web", "1", "testing",
		tree(t, map[string]string{"salt/config/states/top.sls": "base:\n  '*':\n    - agent\n"}))
	server := s.serve(n)
	h := lab.Boot(t, lab.Options{Hostname: "web-testing-local1-1", Network: n, Address: "172.31.0.11"})
	s.reach(h, server)
	install(t, h)
	h.Sh("cp /usr/bin/corpus-agent /root/first-agent")
	s.start(h)
	good := own(h)
	if good != "cmp 0, enabled active" {
		t.Fatalf("at first the host has %s", good)
	}
	for i, c := range []struct{ name, tree, want string }{
		{"it exits", installing(t, agentPackage(t, "99.0", "#!/bin/sh\nexit 1\n")), "corpus-agent version: exit status 1"},
		{"it crashes", installing(t, agentPackage(t, "99.1", "#!/bin/sh\nkill -SEGV $$\n")), "signal: segmentation fault"},
		{"its file is damaged", installing(t, agentPackage(t, "99.2", "\x7fELF")), "exec format error"},
		{"its unit starts another program",
			base("/etc/systemd/system/corpus-agent.service.d/x.conf:\n  file.managed:\n    - makedirs: True\n" +
				"    - contents: |\n        [Service]\n        ExecStart=\n        ExecStart=/bin/true\n"),
			"does not start corpus-agent any more"},
		{"its timer is masked", base("corpus-agent.timer:\n  service.masked: []\n"), "corpus-agent.timer"},
		{"its timer is disabled", base("corpus-agent.timer:\n  service.disabled: []\n"),
			"corpus-agent.timer was enabled and is disabled"},
		{"its timer is stopped", base("corpus-agent.timer:\n  service.dead: []\n"), "corpus-agent.timer ran and is inactive"},
		{"its configuration is nonsense", base("/etc/corpus/agent.yaml:\n  file.managed:\n    - contents: 'nonsense: 1'\n"),
			"nonsense"},
		{"its package is removed", base("corpus-agent:\n  pkg.removed: []\n"),
			"systemd does not load corpus-agent.service any more"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.publish("base", fmt.Sprintf("2.%d", i), "production", c.tree)
			h.Sh("systemctl start corpus-agent.service || true")
			r := history(t, h)[0]
			if r.Exit != 7 || !strings.Contains(r.Error, c.want) {
				t.Errorf("exit code %d: %s; want %q in it", r.Exit, r.Error, c.want)
			}
			// No repository has the package, so its removal cannot be undone completely.
			left := strings.Count(strings.Join(r.Notes, "\n"), "no repository of this host has version")
			if c.name == "its package is removed" && left != 1 {
				t.Errorf("the notes are\n%s", strings.Join(r.Notes, "\n"))
			}
			if got := own(h); got != good {
				t.Errorf("after the rollback the host has %s, want %s", got, good)
			}
			agent(t, h, "deploy").converged(t)
		})
	}
	s.publish("base", "3", "production", installing(t, agentPackage(t, "100", "")))
	h.Sh("systemctl start corpus-agent.service")
	if r := history(t, h)[0]; r.Exit != 0 || !strings.Contains(strings.Join(r.Notes, "\n"), "was tried and works") {
		t.Errorf("an agent that works: exit code %d: %s\n%s", r.Exit, r.Error, strings.Join(r.Notes, "\n"))
	}
	if got := own(h) + ", " + installed(h); got != good+", 100" {
		t.Errorf("at the end the host has %s", got)
	}
	agent(t, h, "deploy").converged(t)
}

// TestFirstDeployWithHangingAgent has the first release replace the agent with one that hangs.
func TestFirstDeployWithHangingAgent(t *testing.T) {
	n, s := lab.NewNetwork(t), newStore(t)
	s.publish("base", "1", "production", installing(t, agentPackage(t, "99.0", "#!/bin/sh\nexec sleep 1000\n")))
	s.publish("web", "1", "testing",
		tree(t, map[string]string{"salt/config/states/top.sls": "base:\n  '*':\n    - agent\n"}))
	server := s.serve(n)
	h := lab.Boot(t, lab.Options{Hostname: "web-testing-local1-1", Network: n, Address: "172.31.0.11"})
	s.reach(h, server)
	install(t, h)
	h.Sh("cp /usr/bin/corpus-agent /root/first-agent")
	good := own(h)
	r := agent(t, h, "deploy", "--store", storeURL, "--trust-root", "/root/root.json")
	if r.Exit != 3 || !strings.Contains(r.Error, "corpus-agent version: no answer within") {
		t.Errorf("exit code %d: %s", r.Exit, r.Error)
	}
	if got := own(h); got != good {
		t.Errorf("after the rollback the host has %s, want %s", got, good)
	}
	s.publish("base", "2", "production", installing(t, agentPackage(t, "99.1", "")))
	h.Sh("systemctl start corpus-agent.service")
	if got := own(h) + ", " + installed(h); got != good+", 99.1" {
		t.Errorf("the timer's run leaves %s", got)
	}
}
