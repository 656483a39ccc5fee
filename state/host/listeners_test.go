package host_test

import (
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// TestListenersAreFound asks who listens on addresses of this process, and on one that nothing has.
func TestListenersAreFound(t *testing.T) {
	h, err := host.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for listen, ask := range map[string]string{"127.0.0.1:0": "127.0.0.1", "0.0.0.0:0": "127.0.0.1", "[::1]:0": "::1", "[::]:0": "127.0.0.1"} {
		l, err := net.Listen("tcp", listen)
		if err != nil {
			t.Logf("%s is not to be had here: %v", listen, err)
			continue
		}
		port := l.Addr().(*net.TCPAddr).AddrPort().Port()
		at := netip.AddrPortFrom(netip.MustParseAddr(ask), port)
		if pids := h.Listeners(at); !slices.Contains(pids, os.Getpid()) {
			t.Errorf("%s: on %s listen %v, and not process %d", listen, at, pids, os.Getpid())
		}
		_ = l.Close()
		if pids := h.Listeners(at); slices.Contains(pids, os.Getpid()) {
			t.Errorf("%s: after the socket was closed, on %s listen %v", listen, at, pids)
		}
	}
}
