package processes_test

import (
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host/processes"
)

// listeners are the processes that take connections to an address.
func listeners(at netip.AddrPort) []int {
	var pids []int
	for _, s := range processes.Sockets(func(s processes.Socket) bool { return s.Takes(at) }) {
		pids = append(pids, s.Holders...)
	}
	return pids
}

// TestProcessesAndSocketsHaveTheirUser looks at this process and at a socket of it.
func TestProcessesAndSocketsHaveTheirUser(t *testing.T) {
	if p := processes.Of(os.Getpid()); p.User != os.Getuid() || p.Cgroup == "" {
		t.Errorf("this process is %+v", p)
	}
	if p := processes.Of(1 << 30); p.User != processes.NoUser {
		t.Errorf("a process that does not exist has user %d", p.User)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	at := l.Addr().(*net.TCPAddr).AddrPort()
	from := c.LocalAddr().(*net.TCPAddr).AddrPort()
	all := processes.Sockets(func(s processes.Socket) bool { return s.Takes(at) || s.Local == at && s.Remote == from })
	if len(all) != 2 || all[0].User != os.Getuid() || all[0].Listens == all[1].Listens {
		t.Errorf("sockets are %+v", all)
	}
}

// TestListenersAreFound asks who listens on addresses of this process, and on one that nothing has.
func TestListenersAreFound(t *testing.T) {
	for listen, ask := range map[string]string{"127.0.0.1:0": "127.0.0.1", "0.0.0.0:0": "127.0.0.1", "[::1]:0": "::1",
		"[::]:0": "127.0.0.1"} {
		l, err := net.Listen("tcp", listen)
		if err != nil {
			t.Logf("%s is not to be had here: %v", listen, err)
			continue
		}
		port := l.Addr().(*net.TCPAddr).AddrPort().Port()
		at := netip.AddrPortFrom(netip.MustParseAddr(ask), port)
		if pids := listeners(at); !slices.Contains(pids, os.Getpid()) {
			t.Errorf("%s: on %s listen %v, and not process %d", listen, at, pids, os.Getpid())
		}
		_ = l.Close()
		if pids := listeners(at); slices.Contains(pids, os.Getpid()) {
			t.Errorf("%s: after the socket was closed, on %s listen %v", listen, at, pids)
		}
	}
}
