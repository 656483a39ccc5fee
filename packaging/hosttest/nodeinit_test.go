//go:build hosts

package hosttest_test

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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

// endSSH kills the ssh that a command has started.
func endSSH(t *testing.T, command *exec.Cmd) {
	t.Helper()
	out, err := exec.Command("ps", "-o", "pid=", "--ppid", fmt.Sprint(command.Process.Pid)).Output()
	if err != nil || len(bytes.Fields(out)) == 0 {
		t.Fatalf("the command has started no ssh: %v", err)
	}
	for _, pid := range bytes.Fields(out) {
		run(t, "kill", "-9", string(pid))
	}
}

// TestBareHostBecomesANode sets up a host over real ssh. Meanwhile ssh is killed, the network loses the host, and the host
// its power.
func TestBareHostBecomesANode(t *testing.T) {
	n, s := lab.NewNetwork(t), newStore(t)
	s.corpus("node", "add", "n1", "--mode", "prod", "--region", "eu1", "--address", "172.31.0.11", "--yes")
	server := s.serve(n)
	base := lab.Standard("bookworm")
	base.Offers = append(base.Offers, "systemd-container", "nftables", "haproxy", "btrfs-progs")
	h := lab.Boot(t, lab.Options{Base: base, Hostname: "bare", Network: n, Address: "172.31.0.11", Crash: true})
	h.Write("/etc/hosts", h.Read("/etc/hosts")+lab.Gateway+" example.com\n")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	h.Write("/usr/local/share/ca-certificates/lab.crt", string(certificate))
	h.Sh("update-ca-certificates")
	p := newPerson(t, n, s, h)
	h.Sh("sync")
	environment := filepath.Join(t.TempDir(), "n1.env")
	if err := os.WriteFile(environment, []byte("EXAMPLE_KEY=of-the-node\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	line := "node init n1 admin@172.31.0.11 --yes --host-store " + storeURL + " --environment " + environment
	_, wait := p.corpus(line + " --dry-run")
	if code, out := wait(); code != 0 || !strings.Contains(out, "hostname: bare -> cloud-prod-eu1-n1") ||
		strings.Contains(out, "of-the-node") || h.Exists("/var/lib/corpus-init") {
		t.Fatalf("a dry run: %d\n%s", code, out)
	}
	const staged = "stat -c %s /var/lib/corpus-init/agent-* 2>/dev/null || echo 0"
	copied := func() (bytes int) {
		_, _ = fmt.Sscan(h.Run("sh", "-c", staged).Out, &bytes)
		return bytes
	}
	arrives := func(more int) {
		t.Helper()
		lab.Eventually(t, time.Minute, "a part of the agent arrives", func() bool { return copied() > more })
	}
	cutOff := func(what string, code int, out string) {
		t.Helper()
		if code != 3 || !strings.Contains(out, "hint: ") || h.Exists("/usr/bin/corpus-agent") {
			t.Fatalf("%s: exit code %d, the agent is installed: %t\n%s", what, code, h.Exists("/usr/bin/corpus-agent"), out)
		}
	}

	n.Slow(h, "16mbit") // at which the agent takes 16 seconds
	cmd, wait := p.corpus(line)
	arrives(1 << 20)
	endSSH(t, cmd)
	code, out := wait()
	cutOff("a killed ssh", code, out)

	first := copied()
	cmd, wait = p.corpus(line)
	arrives(first + 1<<20)
	h.Sh("sync")
	h.Cut()
	endSSH(t, cmd)
	code, out = wait()
	h.Start()
	cutOff("a power failure", code, out)

	second := copied()
	if second <= first {
		t.Errorf("the second command began again: %d bytes, and %d before it", second, first)
	}
	n.Slow(h, "16mbit")
	cmd, wait = p.corpus(line)
	arrives(second + 1<<20)
	n.Lose(h, 100)
	endSSH(t, cmd) // as the ServerAliveInterval does later
	code, out = wait()
	cutOff("a lost network", code, out)
	n.Lose(h, 0)
	n.Slow(h, "")

	// The remaining steps are cut at times that grow.
	for i, pause := range []time.Duration{300, 600, 900, 1200, 1500} {
		cmd, wait = p.corpus(line)
		time.Sleep(pause * time.Millisecond)
		if i%2 == 0 {
			_ = cmd.Process.Kill()
		}
		_ = exec.Command("pkill", "-9", "-P", fmt.Sprint(cmd.Process.Pid)).Run() // it may have ended
		code, out = wait()
		t.Logf("cut after %d ms: exit code %d, agent installed: %t, configured: %t", pause, code,
			h.Exists("/usr/bin/corpus-agent"), h.Exists("/etc/corpus/agent.yaml"))
		h.Sh("[ ! -e /usr/bin/corpus-agent ] || corpus-agent version; [ ! -e /etc/corpus/agent.yaml ] || " +
			"grep -q '^top: ' /etc/corpus/agent.yaml")
	}
	_, wait = p.corpus(line)
	if code, out = wait(); code != 0 || !strings.Contains(out, "is set up as cloud-prod-eu1-n1") {
		t.Fatalf("the last command: exit code %d\n%s", code, out)
	}
	if got := h.Sh("hostname; cat /etc/hostname; stat -c %a:%U /etc/corpus/environment; cat /etc/corpus/environment; " +
		"systemctl is-enabled corpus-agent.timer; systemctl is-active corpus-agent.timer; ls /var/lib | grep corpus; " +
		"grep -e ^store -e ^top /etc/corpus/agent.yaml; systemctl is-active nftables haproxy; ls -d /sys/class/net/guests"); got !=
		"cloud-prod-eu1-n1\ncloud-prod-eu1-n1\n600:root\nEXAMPLE_KEY=of-the-node\nenabled\nactive\ncorpus\n"+
			"store: \""+storeURL+"\"\ntop: \"merge\"\nactive\nactive\n/sys/class/net/guests" {
		t.Errorf("the node has\n%s", got)
	}
	_, wait = p.corpus(line + " --json")
	if code, out = wait(); code != 0 || !strings.Contains(out, `"changes": [],`) || !strings.Contains(out, `"run": 0`) {
		t.Errorf("a host that is set up: exit code %d\n%s", code, out)
	}
	h.Reboot()
	if got := h.Sh("hostname; corpus-agent status --json | grep -c cloud"); !strings.HasPrefix(got, "cloud-prod-eu1-n1") {
		t.Errorf("after a reboot the host is %q", got)
	}
}
