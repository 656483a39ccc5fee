//go:build hosts

package hosttest_test

import (
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/packaging/hosttest/lab"
)

// guestInit is the first process of the guests of these tests: it counts its starts on the disk, gives its interface
// the address of its settings, and answers as SSH and HTTP do, with its hostname and the metric busy.
const guestInit = `package main

import (
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"unsafe"
)

func set(request uintptr, fill func(data []byte)) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0)
	if err != nil {
		return
	}
	defer syscall.Close(fd)
	var r [40]byte
	copy(r[:], "host0")
	fill(r[16:])
	_, _, _ = syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), request, uintptr(unsafe.Pointer(&r)))
}

func address() {
	text, _ := os.ReadFile("/etc/systemd/network/10-corpus.network")
	_, text4, _ := strings.Cut(string(text), "Address=")
	text4, _, _ = strings.Cut(text4, "\n")
	ip, network, err := net.ParseCIDR(text4)
	if err != nil {
		return
	}
	set(syscall.SIOCSIFADDR, func(data []byte) { data[0] = syscall.AF_INET; copy(data[4:], ip.To4()) })
	set(syscall.SIOCSIFNETMASK, func(data []byte) { data[0] = syscall.AF_INET; copy(data[4:], network.Mask) })
	set(syscall.SIOCSIFFLAGS, func(data []byte) { data[0] = syscall.IFF_UP })
}

func main() {
	ended := make(chan os.Signal, 9)
	signal.Ignore(syscall.SIGHUP)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT, syscall.SIGPWR, syscall.Signal(37)) // 37 is SIGRTMIN+3
	f, err := os.OpenFile("/srv/starts", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		panic(err)
	}
	_, _ = f.WriteString("start\n")
	_ = f.Close()
	address()
	if l, err := net.Listen("tcp", ":22"); err == nil {
		go func() {
			for {
				if c, err := l.Accept(); err == nil {
					_, _ = c.Write([]byte("SSH-2.0-tiny\r\n"))
					_ = c.Close()
				}
			}
		}()
	}
	for _, port := range []string{":80", ":8080"} {
		if l, err := net.Listen("tcp", port); err == nil {
			go answer(l)
		}
	}
	<-ended
}

func answer(l net.Listener) {
	for {
		if c, err := l.Accept(); err == nil {
			var request [4096]byte
			_, _ = c.Read(request[:])
			name, _ := os.ReadFile("/etc/hostname")
			busy, _ := os.ReadFile("/srv/busy")
			_, _ = c.Write([]byte("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n# " + string(name) +
				"\nbusy " + string(busy) + "\n"))
			_ = c.Close()
		}
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
func cloudNode(t *testing.T, s *store, n *lab.Network, name, address string, before func(*lab.Host)) *lab.Host {
	t.Helper()
	return nodeOf(t, n, name, lab.Options{Address: address, Before: before})
}

// nodeOf boots a host that is a node, with other options.
func nodeOf(t *testing.T, n *lab.Network, name string, o lab.Options) *lab.Host {
	t.Helper()
	o.Base, o.Hostname, o.Network = nodeBase(), "cloud-prod-eu1-"+name, n
	h := lab.Boot(t, o)
	h.Copy(filepath.Join(repository, "bin", "corpus-agent"), "/usr/bin/corpus-agent")
	h.Copy(filepath.Join(repository, "packaging", "systemd", "corpus-agent.service"),
		"/etc/systemd/system/corpus-agent.service")
	return h
}

// joins configures a host as a node of the store.
func (s *store) joins(h *lab.Host, server *httptest.Server) {
	s.t.Helper()
	s.reach(h, server)
	h.Write("/etc/corpus/agent.yaml", "store: "+storeURL+"\n")
}

// TestGuestsMoveBetweenNodes makes guests on a node and moves them to another one, one with its disk and one without.
// The nodes have different drivers.
func TestGuestsMoveBetweenNodes(t *testing.T) {
	for _, drivers := range [][2]string{{"nspawn", "lxc"}, {"lxc", "nspawn"}} {
		t.Run(drivers[0]+" to "+drivers[1], func(t *testing.T) { moves(t, drivers) })
	}
}

// unitOf returns the unit of a guest on a node with a driver.
func unitOf(driver, guest string) string {
	return map[string]string{"nspawn": "systemd-nspawn@", "lxc": "corpus-lxc@"}[driver] + guest
}

func moves(t *testing.T, drivers [2]string) {
	n, s := lab.NewNetwork(t), newStore(t)
	for i, address := range []string{"172.31.0.11", "172.31.0.12"} {
		s.corpus("node", "add", "n"+strconv.Itoa(i+1), "--mode", "prod", "--region", "eu1", "--address", address, "--driver",
			drivers[i], "--yes")
	}
	guestImage(t, s)
	for _, words := range []string{"db1", "web1 --stateless"} {
		s.corpus(strings.Fields("guest create --yes --project shop --env prod --image tiny --node n1 " + words)...)
	}
	server := s.serve(n)
	n1, n2 := cloudNode(t, s, n, "n1", "172.31.0.11", nil), cloudNode(t, s, n, "n2", "172.31.0.12", nil)
	deploy := func(h *lab.Host) report {
		t.Helper()
		return agent(t, h, "deploy", "--trust-root", "/root/root.json").converged(t)
	}
	for _, h := range []*lab.Host{n1, n2} {
		s.joins(h, server)
		deploy(h)
	}
	runs := func(h *lab.Host, guest string) bool {
		driver := map[*lab.Host]string{n1: drivers[0], n2: drivers[1]}[h]
		return h.Run("systemctl", "is-active", "-q", unitOf(driver, guest)).Code == 0
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
	s.move("db1 n2 --copy", 3)
	s.move("web1 n2", 3)
	deploy(n2)
	where("db1", true, false)
	where("web1", true, false)
	deploy(n1)
	where("db1", false, false)
	where("web1", false, false)
	s.move("web1 n2 --stopped", 0)
	out := s.move("db1 n2 --stopped", 0)
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

// move runs corpus guest move without waiting, and returns its output.
func (s *store) move(words string, code int) string {
	s.t.Helper()
	cmd := exec.Command(filepath.Join(repository, "bin", "corpus"),
		strings.Fields("guest move --yes --wait 0s "+words)...)
	cmd.Env = append(os.Environ(), "CORPUS_STORE="+s.url, "CORPUS_KEYS="+s.keys)
	out, _ := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != code {
		s.t.Fatalf("corpus guest move %s: exit code %d\n%s", words, got, out)
	}
	return string(out)
}

// btrfs puts the disks of guests of a node onto a file system with quotas of its own.
func btrfs(t *testing.T) func(*lab.Host) {
	t.Helper()
	if _, err := exec.LookPath("mkfs.btrfs"); err != nil {
		t.Skip("making a file system with quotas takes the package btrfs-progs")
	}
	return func(h *lab.Host) {
		file, dir := filepath.Join(t.TempDir(), "disk"), filepath.Join(h.Root, "var", "lib", "machines")
		run(t, "truncate", "--size", "1G", file)
		run(t, "mkfs.btrfs", "-q", file)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("mount", "-o", "loop", file, dir).CombinedOutput(); err != nil {
			t.Skipf("this machine mounts no btrfs: %s", out)
		}
		t.Cleanup(func() { _ = exec.Command("umount", "--lazy", dir).Run() }) // the host may have ended with it
	}
}

// TestDisksOfGuestsHaveTheirSizes enlarges and trims a guest that runs, on btrfs.
func TestDisksOfGuestsHaveTheirSizes(t *testing.T) {
	n, s := lab.NewNetwork(t), newStore(t)
	s.corpus("node", "add", "n1", "--mode", "prod", "--region", "eu1", "--yes")
	guestImage(t, s)
	s.corpus(strings.Fields("guest create db1 --yes --project shop --env prod --image tiny --size 40MiB")...)
	server := s.serve(n)
	h := cloudNode(t, s, n, "n1", "172.31.0.11", btrfs(t))
	s.joins(h, server)
	agent(t, h, "deploy", "--trust-root", "/root/root.json").converged(t)
	fill := func(mebibytes int) bool {
		return h.Run("dd", "if=/dev/urandom", "of=/var/lib/machines/db1/srv/data", "bs=1M", "oflag=sync",
			"count="+strconv.Itoa(mebibytes)).Code == 0
	}
	resize := func(words, says string) {
		t.Helper()
		s.corpus(strings.Fields("guest " + words + " --yes")...)
		for _, one := range agent(t, h, "deploy").converged(t).Steps {
			if one.Function == "guest.present" && !strings.Contains(one.Comment, says) {
				t.Errorf("after %s the comment of the guest is %q", words, one.Comment)
			}
		}
	}
	if fill(60) { // and so the disk is full
		t.Error("a guest of 40 MiB has 60 MiB of data")
	}
	resize("enlarge db1 100MiB", "")
	if !fill(60) {
		t.Error("a guest of 100 MiB cannot have 60 MiB of data")
	}
	resize("trim db1 50MiB", "keeps the size")
	if !fill(10) {
		t.Error("the data cannot become smaller")
	}
	agent(t, h, "converge").converged(t)
	if fill(60) {
		t.Error("a guest that was trimmed to 50 MiB has 60 MiB of data")
	}
	if got := h.Sh("systemctl show -P NRestarts -P ActiveState systemd-nspawn@db1"); !strings.Contains(got, "active") {
		t.Errorf("the guest is %q", got)
	}
}

// TestNodesAnnounceGuestsAndRunHooks makes guests whose hooks and notifications are programs of the node, also when a
// hook fails and when the agent is killed while it notifies.
func TestNodesAnnounceGuestsAndRunHooks(t *testing.T) {
	n, s := lab.NewNetwork(t), newStore(t)
	cloudTree := filepath.Join(t.TempDir(), "cloud")
	s.corpus("init", cloudTree, "--kind", "cloud")
	s.publish("cloud", "1", "prod", cloudTree, tree(t, map[string]string{
		"hooks/guest-create.d/10-before": "#!/bin/sh\ntest ! -e /root/refuse || exit 1\n" +
			"echo $CORPUS_STAGE $CORPUS_GUEST $(test -e /var/lib/machines/$CORPUS_GUEST; echo $?) >>/root/hooks\n",
		"hooks/guest-created.d/50-after": "#!/bin/sh\n" +
			"echo $CORPUS_STAGE $CORPUS_GUEST_HOST $CORPUS_GUEST_SSH_PORT $CORPUS_GUEST_NAMES $(pwd) >>/root/hooks\n",
		"hooks/guest-created.d/README": "not run\n"}))
	s.corpus("node", "add", "n1", "--mode", "prod", "--region", "eu1", "--address", "172.31.0.11", "--yes")
	s.corpus("node", "domain", "cloud.example.org", "--yes")
	guestImage(t, s)
	create := func(words string) {
		t.Helper()
		s.corpus(strings.Fields("guest create --yes --project shop --env prod --image tiny " + words)...)
	}
	create("web1 --contact ann@example.org")
	server := s.serve(n)
	h := cloudNode(t, s, n, "n1", "172.31.0.11", nil)
	s.joins(h, server)
	h.Write("/root/notice", "#!/bin/sh\ngrep -q '\"event\":\"guest\"' >/dev/null <<E || exit 0\n$(tee /root/last)\nE\n"+
		"cat /root/last >>/root/notices\nif [ -e /root/kill ]; then rm /root/kill; kill -9 $(pidof corpus-agent); fi\n")
	h.Write("/usr/sbin/sendmail", "#!/bin/sh\necho \"$@\" >>/root/mails; cat >>/root/mails\n")
	h.Sh("chmod 755 /root/notice /usr/sbin/sendmail")
	h.Write("/etc/corpus/agent.yaml", "store: "+storeURL+"\nnotify: {command: [/root/notice]}\n")
	deploy := func() report { t.Helper(); return agent(t, h, "deploy", "--trust-root", "/root/root.json") }
	deploy().converged(t)
	has := func(file, want string, lines int) {
		t.Helper()
		text := h.Sh("cat " + file)
		if !strings.Contains(text, want) || strings.Count(text, want) != lines {
			t.Errorf("%s has %q, want %d times %s", file, text, lines, want)
		}
	}
	has("/root/hooks", "guest-create web1 1", 1)
	has("/root/hooks", "guest-created shop-prod-eu1-web1 40000 web1.cloud.example.org /srv/projects/cloud/", 1)
	has("/root/notices", `"names":["web1.cloud.example.org"],"ssh":"ssh -p 40000 root@172.31.0.11"`, 1)
	has("/root/mails", "SSH: ssh -p 40000 root@172.31.0.11", 1)
	has("/root/mails", "To: ann@example.org", 1)
	if r := deploy().converged(t); r.States.Changed > 0 {
		t.Errorf("a run with nothing to do changed %d states: %+v", r.States.Changed, r.Steps)
	}
	has("/root/notices", `"name":"web1"`, 1)
	create("web2")
	h.Sh("touch /root/refuse")
	if r := deploy(); r.Exit != 7 || !strings.Contains(r.failures(), "10-before") {
		t.Errorf("a hook that fails ends with exit code %d: %s\n%s", r.Exit, r.Error, r.failures())
	}
	if h.Exists("/var/lib/machines/web2") {
		t.Error("a guest was made although its hook failed")
	}
	h.Sh("rm /root/refuse; touch /root/kill")
	h.Sh("corpus-agent unquarantine --all || true")
	if r := h.Run("corpus-agent", "deploy"); r.Code == 0 {
		t.Errorf("the agent was not killed while it notified: %s", r.Out)
	}
	has("/root/notices", `"name":"web2"`, 1)
	deploy().converged(t)
	has("/root/notices", `"name":"web2"`, 2)
	deploy().converged(t)
	has("/root/notices", `"name":"web2"`, 2)
	has("/root/hooks", "guest-created shop-prod-eu1-web2", 1)
}

// measured runs the agent in a host and prints its least time and processor time in milliseconds, and its most memory
// in KiB.
const measured = `import resource, subprocess, time
times, processor, used = [], [], 0
for _ in range(7):
    start, before = time.monotonic(), used
    subprocess.run(["corpus-agent", "deploy"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = usage.ru_utime + usage.ru_stime
    times.append(int(1000 * (time.monotonic() - start)))
    processor.append(int(1000 * (used - before)))
print(min(times), min(processor), usage.ru_maxrss)
`

// TestNodeOfThirtyGuestsIsQuick measures a run with nothing to do on a node with 30 guests that run. Where no other
// program is in the way, the time on the clock is that of the processor.
func TestNodeOfThirtyGuestsIsQuick(t *testing.T) {
	n, s := lab.NewNetwork(t), newStore(t)
	s.corpus("node", "add", "n1", "--mode", "prod", "--region", "eu1", "--slots", "30", "--yes")
	guestImage(t, s)
	for i := range 30 {
		s.corpus(strings.Fields("guest create --yes --project shop --env prod --image tiny g" + strconv.Itoa(i))...)
	}
	server := s.serve(n)
	h := cloudNode(t, s, n, "n1", "172.31.0.11", nil)
	s.joins(h, server)
	agent(t, h, "deploy", "--trust-root", "/root/root.json").converged(t)
	if got := h.Sh("systemctl list-units --no-legend --state=active 'systemd-nspawn@*' | wc -l"); got != "30" {
		t.Fatalf("%s guests run", got)
	}
	h.Write("/root/measured.py", measured)
	var milliseconds, processor, kibibytes int
	out := h.Sh("python3 /root/measured.py")
	if _, err := fmt.Sscan(out, &milliseconds, &processor, &kibibytes); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Logf("%d ms, %d ms of a processor, %d MiB", milliseconds, processor, kibibytes>>10)
	if processor > 150 || kibibytes>>10 > 60 {
		t.Errorf("a run with nothing to do takes %d ms of a processor and %d MiB; want at most 150 ms and 60 MiB", processor,
			kibibytes>>10)
	}
}
