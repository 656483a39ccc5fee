//go:build hosts

package hosttest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/packaging/hosttest/lab"
)

// guestInit is the first process of the guests of these tests: it counts its starts on the disk.
const guestInit = `package main

import (
	"os"
	"os/signal"
)

func main() {
	ended := make(chan os.Signal, 9)
	signal.Notify(ended)
	f, err := os.OpenFile("/srv/starts", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		panic(err)
	}
	_, _ = f.WriteString("start\n")
	_ = f.Close()
	for range ended {
		return
	}
}
`

// guestImage publishes an image whose only program is guestInit.
func guestImage(t *testing.T, s *store) {
	t.Helper()
	root := tree(t, map[string]string{"etc/os-release": "ID=tiny\n", "srv/kept": "",
		"usr/lib/systemd/system/systemd-networkd.service": "[Service]\nExecStart=/bin/true\n" +
			"[Install]\nWantedBy=multi-user.target\n"})
	source := tree(t, map[string]string{"main.go": guestInit, "go.mod": "module init\n\ngo 1.26\n"})
	for _, dir := range []string{"sbin", "proc", "sys", "dev", "run", "tmp", "root", "var"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-o", filepath.Join(root, "sbin", "init"), ".")
	build.Dir, build.Env = source, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=mod")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	image := t.TempDir()
	run(t, "tar", "--numeric-owner", "--owner=0", "--group=0", "-C", root, "-cf", filepath.Join(image, "rootfs.tar"), ".")
	file := filepath.Join(t.TempDir(), "image.tar.zst")
	s.corpus("build", image, "-o", file, "--version", "1.0")
	s.corpus("publish", "image-tiny", "1.0", file)
	s.corpus("guest", "image", "tiny", "image-tiny", "1.0", "--yes")
}

// cloudNode boots a host that is a node.
func cloudNode(t *testing.T, s *store, n *lab.Network, name, address string) *lab.Host {
	t.Helper()
	base := lab.Standard("bookworm")
	base.Offers = append(base.Offers, "systemd-container", "nftables", "haproxy")
	h := lab.Boot(t, lab.Options{Base: base, Hostname: "cloud-prod-eu1-" + name, Network: n, Address: address})
	h.Copy(filepath.Join(repository, "bin", "corpus-agent"), "/usr/bin/corpus-agent")
	h.Copy(filepath.Join(repository, "packaging", "systemd", "corpus-agent.service"),
		"/etc/systemd/system/corpus-agent.service")
	return h
}

// TestGuestsMoveBetweenNodes makes guests on a node and moves them to another one, one with its disk and one without.
func TestGuestsMoveBetweenNodes(t *testing.T) {
	n, s := lab.NewNetwork(t), newStore(t)
	for name, address := range map[string]string{"n1": "172.31.0.11", "n2": "172.31.0.12"} {
		s.corpus("node", "add", name, "--mode", "prod", "--region", "eu1", "--address", address, "--yes")
	}
	guestImage(t, s)
	for _, words := range []string{"db1", "web1 --stateless"} {
		s.corpus(strings.Fields("guest create --yes --project shop --env prod --image tiny --node n1 " + words)...)
	}
	server := s.serve(n)
	n1, n2 := cloudNode(t, s, n, "n1", "172.31.0.11"), cloudNode(t, s, n, "n2", "172.31.0.12")
	deploy := func(h *lab.Host) report {
		t.Helper()
		return agent(t, h, "deploy", "--trust-root", "/root/root.json").converged(t)
	}
	for _, h := range []*lab.Host{n1, n2} {
		s.reach(h, server)
		h.Write("/etc/corpus/agent.yaml", "store: "+storeURL+"\n")
		deploy(h)
	}
	runs := func(h *lab.Host, guest string) bool {
		return h.Run("systemctl", "is-active", "-q", "systemd-nspawn@"+guest).Code == 0
	}
	where := func(guest string, first, second bool) {
		t.Helper()
		if a, b := runs(n1, guest), runs(n2, guest); a != first || b != second {
			t.Fatalf("guest %s runs on n1: %t, on n2: %t; want %t and %t", guest, a, b, first, second)
		}
	}
	where("db1", true, false)
	where("web1", true, false)
	id := n1.Read("/var/lib/machines/db1/etc/machine-id")
	n1.Sh("echo orders >/var/lib/machines/db1/srv/kept")
	move := func(words string, code int) string {
		t.Helper()
		cmd := exec.Command(filepath.Join(repository, "bin", "corpus"),
			strings.Fields("guest move --yes --wait 0s "+words)...)
		cmd.Env = append(os.Environ(), "CORPUS_STORE="+s.url, "CORPUS_KEYS="+s.keys)
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != code {
			t.Fatalf("corpus guest move %s: exit code %d\n%s", words, got, out)
		}
		return string(out)
	}
	move("db1 n2 --copy", 3)
	move("web1 n2", 3)
	deploy(n2)
	where("db1", true, false)
	where("web1", true, false)
	deploy(n1)
	where("db1", false, false)
	where("web1", false, false)
	move("web1 n2 --stopped", 0)
	out := move("db1 n2 --stopped", 0)
	deploy(n2)
	where("web1", false, true)
	where("db1", false, false)
	_, file, _ := strings.Cut(out, "root@172.31.0.11:")
	file, _, _ = strings.Cut(file, " ")
	run(t, "cp", filepath.Join(n1.Root, file), filepath.Join(n2.Root, file))
	deploy(n2)
	where("db1", false, true)
	if got := n2.Read("/var/lib/machines/db1/srv/kept"); got != "orders\n" {
		t.Errorf("after the move the guest has %q", got)
	}
	if got := n2.Read("/var/lib/machines/db1/etc/machine-id"); got != id {
		t.Errorf("the machine ID was %q, and is %q", id, got)
	}
	if got := n2.Read("/var/lib/machines/db1/srv/starts"); got != "start\nstart\n" {
		t.Errorf("the guest that moved has started %q", got)
	}
	if r := deploy(n2); r.States.Changed > 0 {
		t.Errorf("a run with nothing to do changed %d states: %+v", r.States.Changed, r.Steps)
	}
	n1.Reboot()
	n2.Reboot()
	lab.Eventually(t, time.Minute, "the run at boot starts the guests",
		func() bool { return runs(n2, "db1") && runs(n2, "web1") })
	where("db1", false, true)
	s.corpus("guest", "drop", "db1", "n1", "--yes", "--unproven")
	deploy(n1)
	if n1.Exists("/var/lib/machines/db1") || n1.Exists(file) || !n1.Exists("/var/lib/machines/web1") {
		t.Errorf("after the drop of db1, n1 has %s", n1.Sh("ls /var/lib/machines"))
	}
}
