//go:build hosts

package hosttest_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/packaging/hosttest/lab"
)

// person runs corpus on this machine, with an ssh that reaches the hosts of a network.
type person struct {
	t   *testing.T
	env []string
	log string // where each start of ssh adds a line
}

// newPerson makes a key that logs in at a host as root and as an account that may run sudo.
func newPerson(t *testing.T, n *lab.Network, s *store, h *lab.Host) *person {
	t.Helper()
	home := t.TempDir()
	key := filepath.Join(home, "key")
	run(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
	public, err := os.ReadFile(key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	h.Sh("apt-get install -y openssh-server; useradd -m -s /bin/bash admin; " +
		"echo 'admin ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/admin; echo 'Defaults use_pty' >>/etc/sudoers.d/admin")
	h.Write("/home/admin/.ssh/authorized_keys", string(public))
	h.Sh("chown -R admin: /home/admin/.ssh; chmod 700 /home/admin/.ssh; chmod 600 /home/admin/.ssh/authorized_keys; " +
		"systemctl start ssh")
	p := &person{t: t, log: filepath.Join(home, "log")}
	script := fmt.Sprintf("#!/bin/sh\necho start >>%s\nexec ip netns exec %s /usr/bin/ssh -F /dev/null -i %s "+
		"-o UserKnownHostsFile=%s/known -o StrictHostKeyChecking=accept-new \"$@\"\n", p.log, n.Name(), key, home)
	if err := os.WriteFile(filepath.Join(home, "ssh"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	p.env = append(os.Environ(), "HOME="+home, "PATH="+home+":"+os.Getenv("PATH"), "CORPUS_STORE="+s.url,
		"CORPUS_KEYS="+s.keys)
	return p
}

// corpus starts a command. The returned function waits for its end, and returns its exit code and output.
func (p *person) corpus(words string) (*exec.Cmd, func() (int, string)) {
	p.t.Helper()
	cmd := exec.Command(filepath.Join(repository, "bin", "corpus"), strings.Fields(words)...)
	var out bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = p.env, &out, &out
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	return cmd, func() (int, string) { _ = cmd.Wait(); return cmd.ProcessState.ExitCode(), out.String() }
}

// endSSH kills the ssh that a command has started, unless it has noticed by itself that the host is gone.
func endSSH(command *exec.Cmd) {
	_ = exec.Command("pkill", "-9", "-P", strconv.Itoa(command.Process.Pid)).Run()
}

// bareHost is a host that becomes a node.
type bareHost struct {
	*lab.Host
	*person
	t    *testing.T
	line string // the command that makes it a node
}

// newBareHost boots a host with sshd, which reaches a store in which it is the node n1.
func newBareHost(t *testing.T, n *lab.Network) *bareHost {
	t.Helper()
	s := newStore(t)
	s.corpus("node", "add", "n1", "--mode", "prod", "--region", "eu1", "--address", "172.31.0.11", "--yes")
	server := s.serve(n)
	base := lab.Standard("bookworm")
	base.Offers = append(base.Offers, "systemd-container", "nftables", "haproxy", "btrfs-progs")
	h := lab.Boot(t, lab.Options{Base: base, Hostname: "bare", Network: n, Address: "172.31.0.11", Crash: true})
	s.reach(h, server)
	h.Sh("rm /root/root.json")
	environment := filepath.Join(t.TempDir(), "n1.env")
	if err := os.WriteFile(environment, []byte("EXAMPLE_KEY=of-the-node\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := &bareHost{Host: h, person: newPerson(t, n, s, h), t: t,
		line: "node init n1 admin@172.31.0.11 --yes --host-store " + storeURL + " --environment " + environment}
	h.Sh("sync")
	return b
}

// copied returns how many bytes of the agent the host has.
func (b *bareHost) copied() (bytes int) {
	_, _ = fmt.Sscan(b.Run("sh", "-c", "stat -c %s /var/lib/corpus-init/agent-* 2>/dev/null || echo 0").Out, &bytes)
	return bytes
}

// cutCopy starts the command, cuts it when a part of the agent has arrived, and returns how much the host has then.
func (b *bareHost) cutCopy(what string, cut func()) int {
	b.t.Helper()
	before := b.copied()
	cmd, wait := b.corpus(b.line)
	lab.Eventually(b.t, time.Minute, "a part of the agent arrives", func() bool { return b.copied() > before+1<<20 })
	cut()
	endSSH(cmd) // as its ServerAliveInterval does later
	code, out := wait()
	if code != 3 || !strings.Contains(out, "hint: ") {
		b.t.Fatalf("%s: exit code %d\n%s", what, code, out)
	}
	return before
}

// cutAt starts the command, and cuts the power of the host, or only ssh, when the host gets a file.
func (b *bareHost) cutAt(file string, power bool) {
	b.t.Helper()
	b.Sh("sync")
	cmd, wait := b.corpus(b.line)
	for end := time.Now().Add(time.Minute); !b.Exists(file) && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if power {
		b.Cut()
	}
	endSSH(cmd)
	code, out := wait()
	if power {
		b.Start()
	}
	b.t.Logf("%s: exit code %d, agent: %t, configuration: %t", file, code, b.Exists("/usr/bin/corpus-agent"),
		b.Exists("/etc/corpus/agent.yaml"))
	if code != 3 || !strings.Contains(out, "hint: ") {
		b.t.Errorf("a cut at %s: exit code %d\n%s", file, code, out)
	}
	b.Sh("[ ! -e /usr/bin/corpus-agent ] || corpus-agent version; test -s /etc/hostname; test -s /etc/hosts; " +
		"[ ! -e /etc/corpus/agent.yaml ] || grep '^top: .merge.$' /etc/corpus/agent.yaml; " +
		"[ ! -e /etc/corpus/environment ] || grep of-the-node /etc/corpus/environment")
}

// TestBareHostBecomesANode sets up a host over real ssh. Meanwhile ssh is killed, the network loses the host, and the
// host its power.
func TestBareHostBecomesANode(t *testing.T) {
	n := lab.NewNetwork(t)
	b := newBareHost(t, n)
	_, wait := b.corpus(b.line + " --dry-run")
	if code, out := wait(); code != 0 || !strings.Contains(out, "hostname: bare -> cloud-prod-eu1-n1") ||
		strings.Contains(out, "of-the-node") || b.Exists("/var/lib/corpus-init") {
		t.Fatalf("a dry run: %d\n%s", code, out)
	}
	n.Slow(b.Host, "16mbit") // at which the agent takes 16 seconds
	b.cutCopy("a killed ssh", func() {})
	if had := b.cutCopy("a lost network", func() { n.Lose(b.Host, 100) }); had < 1<<20 {
		t.Errorf("the second command began again: the host had %d bytes", had)
	}
	n.Lose(b.Host, 0)
	b.cutCopy("a power failure", func() { b.Sh("sync"); b.Cut() })
	b.Start()
	if had := b.copied(); had < 2<<20 {
		t.Errorf("after a power failure the host has %d bytes", had)
	}
	for _, file := range []string{"/usr/bin/.corpus-agent.corpus-init", "/usr/bin/corpus-agent", "/etc/corpus/environment",
		"/etc/corpus/agent.yaml"} {
		b.cutAt(file, true)
	}
	b.cutAt("/var/lib/corpus/trust", false) // the run continues on the host, and the next command waits for it
	_, wait = b.corpus(b.line)
	if code, out := wait(); code != 0 || !strings.Contains(out, "is set up as cloud-prod-eu1-n1") {
		t.Fatalf("the last command: exit code %d\n%s", code, out)
	}
	if got, want := b.Sh("hostname; cat /etc/hostname; stat -c %a:%U /etc/corpus/environment; "+
		"cat /etc/corpus/environment; systemctl is-enabled corpus-agent.timer; systemctl is-active corpus-agent.timer; "+
		"ls /var/lib | grep corpus; grep -e ^store -e ^top /etc/corpus/agent.yaml; systemctl is-active nftables haproxy; "+
		"ls -d /sys/class/net/guests"), "cloud-prod-eu1-n1\ncloud-prod-eu1-n1\n600:root\nEXAMPLE_KEY=of-the-node\n"+
		"enabled\nactive\ncorpus\nstore: \""+storeURL+"\"\ntop: \"merge\"\nactive\nactive\n/sys/class/net/guests"; got !=
		want {
		t.Errorf("the node has\n%s\nwant\n%s", got, want)
	}
	_, wait = b.corpus(b.line + " --json")
	if code, out := wait(); code != 0 || !strings.Contains(out, `"changes": [],`) || !strings.Contains(out, `"run": 0`) {
		t.Errorf("a host that is set up: exit code %d\n%s", code, out)
	}
	b.Reboot()
	if got := b.Sh("hostname; corpus-agent status --json | grep -c cloud"); !strings.HasPrefix(got, "cloud-prod-eu1-n1") {
		t.Errorf("after a reboot the host is %q", got)
	}
}
