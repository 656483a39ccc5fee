//go:build hosts

package lab

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Options describe the host to boot. The zero Options are a Debian host without a network.
type Options struct {
	Base     Base   // Standard("bookworm") by default
	Hostname string // the host's name in the lab by default

	Network *Network // network that the host is joined to; none by default
	Address string   // address in the network, such as 172.31.0.11

	// Crash gives the host a separate disk: a power failure loses data that was not synced.
	Crash bool
	// Before is called with the host's filesystem before its first boot.
	Before func(h *Host)
}

// Host is a host, which runs except between Stop or Cut and Start.
type Host struct {
	Name string // in the lab
	Root string // its filesystem on this machine

	t       *testing.T
	network *Network
	disk    *disk
	nspawn  *exec.Cmd
	console *bytes.Buffer
	leader  int // ID of its init on this machine
}

// Boot boots a host and waits until it has settled. It is removed when the test ends.
func Boot(t *testing.T, o Options) *Host {
	t.Helper()
	h := Prepare(t, o)
	h.Start()
	return h
}

// Prepare makes a host that has not booted yet. It is removed when the test ends.
func Prepare(t *testing.T, o Options) *Host {
	t.Helper()
	if err := need(); err != nil {
		t.Skip(err)
	}
	if o.Base.Suite == "" {
		o.Base = Standard("bookworm")
	}
	dir, err := cache()
	if err != nil {
		t.Fatal(err)
	}
	tree, name := o.Base.Tree(t), newName()
	h := &Host{Name: name, t: t, network: o.Network, disk: &disk{dir: filepath.Join(dir, "running", name), tree: tree,
		crash: o.Crash}}
	h.Root = h.disk.root()
	t.Cleanup(h.remove)
	if err := h.disk.mount(); err != nil {
		t.Fatal(err)
	}
	h.personalise(o)
	if o.Before != nil {
		o.Before(h)
	}
	return h
}

// personalise writes the files that are specific to the host.
func (h *Host) personalise(o Options) {
	h.t.Helper()
	if o.Hostname == "" {
		o.Hostname = h.Name
	}
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails
	h.Write("/etc/hostname", o.Hostname+"\n")
	h.Write("/etc/machine-id", hex.EncodeToString(id)+"\n")
	h.Write("/etc/hosts", "127.0.0.1 localhost\n127.0.1.1 "+o.Hostname+"\n")
	if o.Network == nil {
		return
	}
	h.Write("/etc/systemd/network/10-lab.network",
		"[Match]\nName=host0\n[Network]\nAddress="+o.Address+"/24\nGateway="+Gateway+"\nIPv6AcceptRA=no\n")
	h.Link("/lib/systemd/system/systemd-networkd.service",
		"/etc/systemd/system/multi-user.target.wants/systemd-networkd.service")
}

// Start boots a host that was stopped or cut, and waits until it has settled.
func (h *Host) Start() {
	h.t.Helper()
	h.PowerOn()
	h.Ready(time.Minute)
}

// PowerOn boots a host that was stopped or cut. It does not wait.
func (h *Host) PowerOn() {
	h.t.Helper()
	if !mounted(h.Root) {
		if err := h.disk.mount(); err != nil {
			h.t.Fatal(err)
		}
	}
	args := []string{"systemd-nspawn", "-q", "-D", h.Root, "-M", h.Name, "-b", "--register=no", "--timezone=off",
		"--keep-unit", "--kill-signal=SIGRTMIN+4",
		"--console=pipe", "--link-journal=no", "--resolv-conf=off"}
	if h.network == nil {
		args = append(args, "--private-network")
	} else {
		args = append([]string{"nsenter", "--net=/run/netns/" + h.network.name}, append(args, "--network-bridge="+bridge)...)
	}
	h.console = &bytes.Buffer{}
	cmd := exec.Command("sh", append([]string{"-c", enterCgroups + `shift; exec "$@"`, "sh", h.Name}, args...)...)
	cmd.Env = append(os.Environ(), "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1")
	cmd.Stdout, cmd.Stderr = h.console, h.console
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.nspawn, h.leader = cmd, 0
	if h.network != nil {
		h.network.plug("vb-" + h.Name)
	}
}

// enterCgroups gives a host its own control groups; otherwise two hosts would share system.slice. It supports machines
// with one hierarchy and with several.
const enterCgroups = `top=/sys/fs/cgroup
for c in $top $top/unified $top/systemd $top/memory $top/pids; do
  [ -e $c/cgroup.procs ] && mkdir -p "$c/corpus-lab/$1" && echo $$ > "$c/corpus-lab/$1/cgroup.procs"
done 2>/dev/null
`

// removeCgroups removes a host's control groups; otherwise they exist until the machine reboots.
func removeCgroups(name string) {
	_ = exec.Command("find", "/sys/fs/cgroup", "-depth", "-path", "*/corpus-lab/"+name+"*", "-type", "d", "-exec", "rmdir",
		"{}", "+").Run()
}

// Stop shuts the host down as an administrator does.
func (h *Host) Stop() {
	h.t.Helper()
	_ = h.nspawn.Process.Signal(syscall.SIGTERM) // nspawn shuts the host down
	h.ended(time.Minute)
	if err := h.disk.unmount(); err != nil {
		h.t.Fatal(err)
	}
}

// PoweredOff waits until the host, whose shutdown was requested from inside, has shut down.
func (h *Host) PoweredOff() {
	h.t.Helper()
	h.ended(2 * time.Minute)
	if err := h.disk.unmount(); err != nil {
		h.t.Fatal(err)
	}
}

// Reboot stops the host and starts it.
func (h *Host) Reboot() {
	h.t.Helper()
	h.Stop()
	h.Start()
}

// Cut simulates a power failure of the host. With Options.Crash, data that was not synced is lost.
func (h *Host) Cut() {
	h.t.Helper()
	if h.disk.crash {
		if err := h.disk.freeze(); err != nil {
			h.t.Fatal(err)
		}
	}
	h.kill()
	if err := h.disk.unmount(); err != nil {
		h.t.Fatal(err)
	}
}

func (h *Host) kill() {
	if h.nspawn == nil {
		return
	}
	for range 20 { // a host that has just been started may have no init yet
		if h.leader = h.init(); h.leader != 0 {
			_ = syscall.Kill(h.leader, syscall.SIGKILL) // all processes of its namespace end with it
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	h.ended(5 * time.Second)
}

// ended waits for the end of nspawn, and kills it if that takes too long.
func (h *Host) ended(within time.Duration) {
	done := make(chan struct{})
	go func() { _ = h.nspawn.Wait(); close(done) }() // an error is expected if it was killed
	select {
	case <-done:
	case <-time.After(within):
		_ = syscall.Kill(-h.nspawn.Process.Pid, syscall.SIGKILL)
		<-done
	}
	h.nspawn, h.leader = nil, 0
}

func (h *Host) remove() {
	h.kill()
	if h.t.Failed() && h.console != nil && h.console.Len() > 0 {
		h.t.Logf("console of %s:\n%s", h.Name, tail(h.console.String(), 20))
	}
	if err := removeTree(h.disk.dir); err != nil {
		h.t.Error(err)
	}
	removeCgroups(h.Name)
}
