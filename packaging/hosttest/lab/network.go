//go:build hosts

package lab

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Addresses of the test's side of every network.
const (
	Gateway  = "172.31.0.1"      // default gateway of hosts
	Metadata = "169.254.169.254" // address of the metadata service of clouds
)

const bridge = "br0"

// Network connects hosts to each other and to servers of the test, and to no other network.
type Network struct {
	t    *testing.T
	name string
}

// NewNetwork makes a network, which ends with the test.
func NewNetwork(t *testing.T) *Network {
	t.Helper()
	if err := need(); err != nil {
		t.Skip(err)
	}
	n := &Network{t: t, name: newName()}
	ip(t, "netns", "add", n.name)
	t.Cleanup(func() { _, _ = command("ip", "netns", "del", n.name) }) // if this fails, the next run removes the namespace
	for _, args := range [][]string{
		{"link", "set", "lo", "up"},
		{"link", "add", bridge, "type", "bridge"},
		{"addr", "add", Gateway + "/24", "dev", bridge},
		{"addr", "add", Metadata + "/32", "dev", bridge},
		{"link", "set", bridge, "up"},
	} {
		ip(t, append([]string{"-n", n.name}, args...)...)
	}
	return n
}

// Lose drops a share of a host's packets, in percent and in both directions, without a loss of carrier. 100 disconnects
// the host as a fault in the network does, and 0 removes the loss.
func (n *Network) Lose(h *Host, percent int) {
	n.t.Helper()
	const table = "bridge lab"
	_, _ = command("ip", "netns", "exec", n.name, "nft", "delete", "table", "bridge", "lab") // the table may not exist
	if percent == 0 {
		return
	}
	dice := ""
	if percent < 100 {
		dice = "numgen random mod 100 < " + strconv.Itoa(percent) + " "
	}
	var rules strings.Builder
	for hook, side := range map[string]string{"prerouting": "iifname", "postrouting": "oifname"} {
		fmt.Fprintf(&rules, "add chain %s %s { type filter hook %s priority 0; }\nadd rule %s %s %s vb-%s %sdrop\n", table,
			hook, hook, table, hook, side, h.Name, dice)
	}
	cmd := exec.Command("ip", "netns", "exec", n.name, "nft", "-f", "-")
	cmd.Stdin = strings.NewReader("add table " + table + "\n" + rules.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		n.t.Fatalf("losing packets: %v\n%s", err, out)
	}
}

// Slow limits the rate of traffic to a host, in the notation of tc(8) such as 1mbit; "" ends it.
func (n *Network) Slow(h *Host, rate string) {
	n.t.Helper()
	tc := []string{"netns", "exec", n.name, "tc", "qdisc"}
	if rate == "" {
		ip(n.t, append(tc, "del", "dev", "vb-"+h.Name, "root")...)
		return
	}
	ip(n.t, append(tc, "add", "dev", "vb-"+h.Name, "root", "tbf", "rate", rate, "burst", "16k", "latency", "200ms")...)
}

// Name returns the name of the network namespace of the test's side, for programs that are run in it.
func (n *Network) Name() string { return n.name }

// plug brings up a host's end of the connection, as networkd does.
func (n *Network) plug(device string) {
	n.t.Helper()
	var err error
	for range 250 {
		if _, err = command("ip", "-n", n.name, "link", "set", device, "up"); err == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	n.t.Fatal(err)
}

// Unplug disconnects a host from the network.
func (n *Network) Unplug(h *Host) { ip(n.t, "-n", n.name, "link", "set", "vb-"+h.Name, "down") }

// Plug connects a host to the network again.
func (n *Network) Plug(h *Host) { n.plug("vb-" + h.Name) }

// Listen listens in the network, at an address of the test's side.
func (n *Network) Listen(address string) net.Listener {
	n.t.Helper()
	l, err := n.listen(address)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = l.Close() }) // the listener may be closed already
	return l
}

// listen moves this thread into the network temporarily; the open socket stays there.
func (n *Network) listen(address string) (l net.Listener, err error) {
	runtime.LockOSThread()
	elsewhere := false
	defer func() {
		if !elsewhere { // a thread that cannot return to its namespace must not be used again
			runtime.UnlockOSThread()
		}
	}()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, err
	}
	defer home.Close()
	there, err := os.Open("/run/netns/" + n.name)
	if err != nil {
		return nil, err
	}
	defer there.Close()
	if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, err
	}
	l, err = net.Listen("tcp", address)
	if back := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); back != nil {
		elsewhere = true
		return nil, back
	}
	return l, err
}

// Serve serves HTTP at an address of the test's side until the test ends.
func (n *Network) Serve(address string, handler http.Handler) {
	n.t.Helper()
	server, l := &http.Server{Handler: handler}, n.Listen(address)
	go func() { _ = server.Serve(l) }() // until it is closed
	n.t.Cleanup(func() { _ = server.Close() })
}

// Relay forwards connections to an address of the test's side to a server of this machine.
func (n *Network) Relay(address, server string) {
	n.t.Helper()
	l := n.Listen(address)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // the test has ended
			}
			go relay(c, server)
		}
	}()
}

func relay(c net.Conn, server string) {
	defer c.Close()
	s, err := net.Dial("tcp", server)
	if err != nil {
		return // the host's connection ends
	}
	defer s.Close()
	go func() { _, _ = io.Copy(s, c); _ = s.(*net.TCPConn).CloseWrite() }()
	_, _ = io.Copy(c, s)
}
