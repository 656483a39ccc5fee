package processes_test

import (
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host/processes"
)

// listeners returns the processes that listen on an address.
func listeners(at netip.AddrPort) []int {
	var pids []int
	for _, s := range processes.Sockets(func(s processes.Socket) bool { return s.Takes(at) }) {
		pids = append(pids, s.Holders...)
	}
	return pids
}

// TestProcessesAndSocketsHaveTheirUser reads this process and one of its sockets.
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

// TestListenersAreFound looks up the processes that listen on addresses of this process, and on an unused one.
func TestListenersAreFound(t *testing.T) {
	for listen, connect := range map[string]string{"127.0.0.1:0": "127.0.0.1", "0.0.0.0:0": "127.0.0.1", "[::1]:0": "::1",
		"[::]:0": "127.0.0.1"} {
		l, err := net.Listen("tcp", listen)
		if err != nil {
			t.Logf("this machine cannot listen on %s: %v", listen, err)
			continue
		}
		port := l.Addr().(*net.TCPAddr).AddrPort().Port()
		at := netip.AddrPortFrom(netip.MustParseAddr(connect), port)
		if pids := listeners(at); !slices.Contains(pids, os.Getpid()) {
			t.Errorf("%s: %v listen on %s, want process %d", listen, pids, at, os.Getpid())
		}
		_ = l.Close()
		if pids := listeners(at); slices.Contains(pids, os.Getpid()) {
			t.Errorf("%s: after the socket was closed, %v listen on %s", listen, pids, at)
		}
	}
}
