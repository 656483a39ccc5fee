//go:build hosts

package hosttest_test

import (
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/packaging/hosttest/lab"
)

// TestFirstBootFromUserData boots a host with the output of `corpus bootstrap`, once for the package and once for the
// static binary, and waits for its timer to deploy the next version.
func TestFirstBootFromUserData(t *testing.T) {
	for kind, file := range map[string]string{"package": deb(t),
		"binary": filepath.Join(repository, "bin", "corpus-agent")} {
		t.Run(kind, func(t *testing.T) {
			n, s := lab.NewNetwork(t), newStore(t)
			s.publish("web", "1", "testing", web(t, "1", checks))
			server := s.serve(n)
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			name := map[string]string{"package": "corpus-agent.deb", "binary": "corpus-agent"}[kind]
			n.Serve(net.JoinHostPort(lab.Gateway, "80"), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/"+name {
					http.NotFound(w, r)
					return
				}
				_, _ = w.Write(data)
			}))
			userData := s.corpus("bootstrap", "--store", storeURL, "--trust-root", filepath.Join(s.keys, "root.json"),
				"--agent", "http://"+lab.Gateway+"/"+name, "--agent-digest", fmt.Sprintf("sha256:%x", sha256.Sum256(data)))
			if len(userData) > 2048 {
				t.Errorf("the user data has %d bytes", len(userData))
			}
			h := lab.Boot(t, lab.Options{Hostname: "golden-image", Network: n, Address: "172.31.0.11"})
			h.Sh("apt-get install -y cloud-init")
			s.reach(h, server)
			h.Write("/etc/cloud/cloud.cfg.d/90-lab.cfg",
				"datasource_list: [NoCloud]\nnetwork: {config: disabled}\nmanage_etc_hosts: false\n")
			h.Write("/var/lib/cloud/seed/nocloud/meta-data", "instance-id: lab-1\nlocal-hostname: web-testing-local1-1\n")
			h.Write("/var/lib/cloud/seed/nocloud/user-data", userData)
			h.Write("/etc/corpus/agent.yaml", "keep:\n  releases: 4\n") // as write_files does, before any script runs
			h.Sh("cloud-init clean --logs; rm -f /etc/machine-id; touch /etc/machine-id")
			h.Reboot()
			h.Sh("cloud-init status --wait || true")
			if got := page(h); got != "web 1" {
				t.Fatalf("after its first boot the host serves %q\n%s", got, h.Sh("tail -40 /var/log/cloud-init-output.log"))
			}
			if got := timer(h); got != "enabled active" {
				t.Errorf("the timer is %s", got)
			}
			if got := h.Read("/etc/corpus/agent.yaml"); got != "keep:\n  releases: 4\n" {
				t.Errorf("the configuration that cloud-init wrote is now %q", got)
			}
			if r := h.Run("sh", "-c", "systemd-analyze verify --man=no corpus-agent.service corpus-agent.timer"); r.Code != 0 ||
				strings.Contains(r.Err, "corpus-agent") {
				t.Errorf("systemd-analyze verify: %s", r.Err)
			}
			fast(h)
			s.publish("web", "2", "testing", web(t, "2", checks))
			lab.Eventually(t, time.Minute, "the timer brings version 2", func() bool { return page(h) == "web 2" })
		})
	}
}

// TestUserDataRefusesAnotherAgent serves an agent with a digest other than that in the user data.
func TestUserDataRefusesAnotherAgent(t *testing.T) {
	n, s := lab.NewNetwork(t), newStore(t)
	n.Serve(net.JoinHostPort(lab.Gateway, "80"), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("#!/bin/sh\ntouch /root/it-ran\n"))
	}))
	userData := s.corpus("bootstrap", "--store", storeURL, "--trust-root", filepath.Join(s.keys, "root.json"),
		"--agent", "http://"+lab.Gateway+"/corpus-agent", "--agent-digest", filepath.Join(repository, "bin", "corpus-agent"))
	h := lab.Boot(t, lab.Options{Hostname: "web-testing-local1-1", Network: n, Address: "172.31.0.11"})
	h.Program("/root/user-data", userData)
	r := h.Run("/root/user-data")
	if r.Code == 0 || h.Exists("/root/it-ran") || h.Exists("/usr/bin/corpus-agent") {
		t.Errorf("exit code %d; the agent ran: %t, was installed: %t\n%s%s", r.Code, h.Exists("/root/it-ran"),
			h.Exists("/usr/bin/corpus-agent"), r.Out, r.Err)
	}
}

// TestAgentUpdatesItself has base install a later package of the agent while the agent deploys base. The run completes,
// and the next one uses the new agent.
func TestAgentUpdatesItself(t *testing.T) {
	n, s := lab.NewNetwork(t), newStore(t)
	base := func(states string) string {
		return tree(t, map[string]string{"states/agent.sls": states})
	}
	s.publish("base", "1", "production", base("/etc/motd:\n  file.managed:\n    - contents: base 1\n"))
	both := tree(t, map[string]string{"salt/config/states/top.sls": "base:\n  '*':\n    - agent\n    - slow\n"})
	s.publish("slow", "1", "testing", slow(t, "1"), both)
	server := s.serve(n)
	h := lab.Boot(t, lab.Options{Hostname: "slow-testing-local1-1", Network: n, Address: "172.31.0.11"})
	s.reach(h, server)
	install(t, h)
	h.Sh("systemctl stop corpus-agent.timer")
	agent(t, h, "deploy", "--store", storeURL, "--trust-root", "/root/root.json").converged(t)

	next := base(`
corpus-agent:
  pkg.installed:
    - sources:
      - corpus-agent: salt://later.deb
/etc/after-the-update:
  file.managed:
    - contents: it continued
    - require:
      - pkg: corpus-agent
`)
	run(t, "cp", laterPackage(t), filepath.Join(next, "states", "later.deb"))
	s.publish("base", "2", "production", next)
	s.publish("slow", "2", "testing", slow(t, "2"), both)
	h.Sh("systemctl start corpus-agent.timer; systemctl start corpus-agent.service")
	r := history(t, h)[0]
	if r.Outcome != "converged" || !h.Exists("/etc/after-the-update") {
		t.Fatalf("the run that updated its own agent is %s: %s\n%s", r.Outcome, r.Error,
			h.Sh("systemctl status --no-pager corpus-agent.service corpus-agent.timer || true; journalctl --no-pager -u "+
				"corpus-agent.service | tail -40; corpus-agent status; corpus-agent history"))
	}
	if got := h.Sh(
		"dpkg -s corpus-agent | grep ^Version; cat /etc/slow/after; systemctl show -p Result --value " +
			"corpus-agent.service"); got != "Version: 99.0\n2\nsuccess" {
		t.Errorf("the host has %q", got)
	}
	if got := timer(h); got != "enabled active" {
		t.Errorf("the timer is %s", got)
	}
	if again := h.Run("corpus-agent", "deploy", "--now"); again.Code != 0 {
		t.Errorf("the new agent's first run: exit code %d: %s%s", again.Code, again.Out, again.Err)
	}
}

// TestPushOverSSH pushes a working tree to a host by real ssh.
func TestPushOverSSH(t *testing.T) {
	n := lab.NewNetwork(t)
	h := lab.Boot(t, lab.Options{Hostname: "dev1", Network: n, Address: "172.31.0.11"})
	install(t, h)
	h.Sh("apt-get install -y openssh-server git")
	home := t.TempDir()
	key := filepath.Join(home, "key")
	run(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
	public, err := os.ReadFile(key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	h.Write("/root/.ssh/authorized_keys", string(public))
	h.Sh("chmod 700 /root/.ssh; chmod 600 /root/.ssh/authorized_keys; systemctl start ssh")
	ssh := filepath.Join(home, "ssh")
	script := fmt.Sprintf(
		"#!/bin/sh\nexec ip netns exec %s ssh -F /dev/null -i %s -o UserKnownHostsFile=%s/known -o "+
			"StrictHostKeyChecking=accept-new \"$@\"\n", n.Name(), key, home)
	if err := os.WriteFile(ssh, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	d := &developer{t: t, tree: filepath.Join(home, "shop"), env: append(os.Environ(), "HOME="+home, "GIT_SSH="+ssh,
		"GIT_SSH_VARIANT=ssh", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")}
	if err := os.Mkdir(d.tree, 0o755); err != nil {
		t.Fatal(err)
	}
	d.ok("git", "init", "-q", "-b", "main")
	d.commit("out:\n  file.managed:\n    - name: /srv/out\n    - contents: one\n")
	if out := d.ok("corpus", "push", "root@172.31.0.11", "shop", "--init", "--env", "dev"); !strings.Contains(out,
		"pushed shop to root@172.31.0.11") {
		t.Errorf("the first push prints\n%s", out)
	}
	if got := h.Sh("cat /srv/out"); got != "one" {
		t.Errorf("the host has %q", got)
	}
	h.Sh("corpus-agent project switchmode shop staging")
	d.commit("out:\n  test.fail_without_changes: []\n")
	out, err := d.run("corpus", "push", "root@172.31.0.11", "shop")
	if err == nil || !strings.Contains(out, "rolled back") {
		t.Errorf("a failing push: %v\n%s", err, out)
	}
	if got, status := h.Sh("cat /srv/out"), h.Sh("corpus-agent status"); got != "one" ||
		!strings.Contains(status, "(unsigned) since") {
		t.Errorf("after it, the host has %q, and its status is\n%s", got, status)
	}
}

// TestHostDeploysAfterTheFirstPromotion installs a host before its service is promoted to its channel, while the store
// does not respond yet. The timer deploys the service.
func TestHostDeploysAfterTheFirstPromotion(t *testing.T) {
	n, s := lab.NewNetwork(t), newStore(t)
	s.publish("web", "1", "testing", web(t, "1", checks))
	server := s.serve(n)
	root, err := os.ReadFile(filepath.Join(s.keys, "root.json"))
	if err != nil {
		t.Fatal(err)
	}
	h := lab.Boot(t, lab.Options{Hostname: "host1", Network: n, Address: "172.31.0.11"})
	install(t, h)
	r := h.Run("corpus-agent", "deploy", "web", "production", "--store", storeURL, "--trust-root",
		fmt.Sprintf("sha256:%x", sha256.Sum256(root)))
	if r.Code != 5 {
		t.Fatalf("without a store: exit code %d: %s%s", r.Code, r.Out, r.Err)
	}
	fast(h)
	s.reach(h, server)
	lab.Eventually(t, time.Minute, "the timer reaches the store", func() bool {
		return h.Exists("/var/lib/corpus/trust/root.json")
	})
	if h.Exists("/var/lib/corpus/trust/given") {
		t.Error("the saved argument remains after the root was pinned")
	}
	s.corpus("promote", "web", "testing", "production")
	lab.Eventually(t, time.Minute, "the timer deploys the first promotion", func() bool { return page(h) == "web 1" })
}

// TestTheEnvironmentNamesTheRootOfTrust writes all settings of a host into /etc/corpus/environment, as an image or a
// configuration tool does, and waits for the timer. With a file without a root of trust, no run starts.
func TestTheEnvironmentNamesTheRootOfTrust(t *testing.T) {
	n, s := lab.NewNetwork(t), newStore(t)
	s.publish("web", "1", "testing", web(t, "1", checks))
	server := s.serve(n)
	h := lab.Boot(t, lab.Options{Hostname: "web-testing-local1-1", Network: n, Address: "172.31.0.11"})
	install(t, h)
	h.Sh("systemctl stop corpus-agent.timer")
	s.reach(h, server)
	h.Write("/etc/corpus/environment", "CORPUS_STORE="+storeURL+"\n")
	h.Sh("systemctl start corpus-agent.service")
	if got := strings.Fields(
		h.Sh("systemctl show -p ActiveState -p ExecMainStartTimestampMonotonic --value corpus-agent.service")); !slices.Equal(
		slices.Sorted(slices.Values(got)), []string{"0", "inactive"}) {
		t.Errorf("without a root of trust the service is %s", got)
	}
	h.Write("/etc/corpus/environment", "CORPUS_STORE="+storeURL+"\nCORPUS_TRUST_ROOT=/root/root.json\n")
	fast(h)
	h.Sh("systemctl start corpus-agent.timer")
	lab.Eventually(t, time.Minute, "the timer deploys", func() bool { return page(h) == "web 1" })
}
