package network

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// sockets returns the functions about sockets and neighbours.
func sockets(n network) function.Table {
	return function.Table{
		"network.netstat":    function.Of("", n.netstat),
		"network.active_tcp": function.Of("", n.active),
		"network.arp":        function.Of("", n.neighbours),
	}
}

// Acting returns the functions that contact other hosts, which templates must not do.
func Acting(f *function.Facts) function.Table {
	n := network{f}
	return function.Table{
		"network.ping":    function.Of("host, timeout=False, return_boolean=False", n.ping),
		"network.connect": function.Of("host, port=None, **kwargs", n.connect),
	}
}

// ping returns the output of ping(8) for four packets, or whether there was an answer.
func (n network) ping(ctx context.Context, to string, timeout any, yesOrNo bool) (any, error) {
	if to == "" || strings.HasPrefix(to, "-") {
		return nil, fmt.Errorf("%q is not a host", to)
	}
	argv := []string{"ping", "-c", "4"}
	if value.Truth(timeout) {
		seconds, err := function.Int(timeout)
		if err != nil || seconds < 1 {
			return nil, function.TypeError("argument timeout: a number of seconds was expected")
		}
		argv = append(argv, "-W", strconv.Itoa(seconds))
	}
	out, err := n.Output(ctx, host.Line{Argv: append(argv, to), Limit: 2 * time.Minute})
	if err != nil {
		return nil, err
	}
	if yesOrNo {
		return out.Code == 0, nil
	}
	if out.Stdout == "" {
		return out.Stderr, nil
	}
	return out.Stdout, nil
}

// connect reports whether a port of a host accepts connections.
func (n network) connect(ctx context.Context, to string, port any, options *value.Map) (*value.Map, error) {
	if to == "" || port == nil {
		return value.NewMap("result", false, "comment", "a host and a port are needed"), nil
	}
	proto, family, limit := "tcp", "", 5*time.Second
	if v, ok := options.Get("proto"); ok {
		proto = strings.ToLower(value.Str(v))
	}
	if v, ok := options.Get("family"); ok {
		family = map[string]string{"ipv4": "4", "ipv6": "6"}[value.Str(v)]
	}
	if seconds, err := function.Int(options.Value("timeout")); err == nil && seconds > 0 {
		limit = time.Duration(seconds) * time.Second
	}
	if proto != "tcp" && proto != "udp" {
		return nil, fmt.Errorf("the protocol is %s, and tcp or udp was expected", proto)
	}
	if err := n.Host.Kernel.Allowed("connecting to " + to); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c, err := new(net.Dialer).DialContext(ctx, proto+family, net.JoinHostPort(to, value.Str(port)))
	if err != nil {
		return value.NewMap("result", false, "comment", fmt.Sprintf("Unable to connect to %s on %s port %s: %v", to, proto,
			value.Str(port), err)), nil
	}
	defer c.Close()
	return value.NewMap("result", true, "comment", fmt.Sprintf("Successfully connected to %s (%s) on %s port %s", to,
		hostOf(c.RemoteAddr()), proto, value.Str(port))), nil
}

func hostOf(a net.Addr) string {
	ip, _, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	return ip
}

// tcpStates returns the names of the kernel's numbers for TCP states.
func tcpStates() []string {
	return []string{"", "ESTABLISHED", "SYN_SENT", "SYN_RECV", "FIN_WAIT1", "FIN_WAIT2", "TIME_WAIT", "CLOSE",
		"CLOSE_WAIT", "LAST_ACK", "LISTEN", "CLOSING"}
}

// netstat returns the sockets of the running system.
func (n network) netstat() (*value.List, error) {
	all := value.NewList()
	for _, proto := range []string{"tcp", "tcp6", "udp", "udp6"} {
		text, err := function.ReadText(n.Host, "/proc/net/"+proto)
		if function.Absent(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(text) {
			if m, ok := n.socket(proto, strings.Fields(line)); ok {
				all.Append(m)
			}
		}
	}
	return all, nil
}

func (n network) socket(proto string, f []string) (*value.Map, bool) {
	if len(f) < 10 {
		return nil, false
	}
	local, okL := procEndpoint(f[1])
	remote, okR := procEndpoint(f[2])
	state, err := strconv.ParseUint(f[3], 16, 8)
	if !okL || !okR || err != nil {
		return nil, false
	}
	tx, rx, _ := strings.Cut(f[4], ":")
	m := value.NewMap("proto", proto, "recv-q", strconv.Itoa(hexNumber(rx)), "send-q", strconv.Itoa(hexNumber(tx)),
		"local-address", local.String(), "remote-address", remote.String(), "inode", f[9])
	if names := tcpStates(); strings.HasPrefix(proto, "tcp") && int(state) < len(names) {
		m.Set("state", names[state])
	}
	if uid, err := strconv.Atoi(f[7]); err == nil {
		m.Set("user", n.UserName(uid))
	}
	return m, true
}

func hexNumber(text string) int {
	n, _ := strconv.ParseInt(text, 16, 64)
	return int(n)
}

// procEndpoint parses an address and a port in the kernel's format: words of four bytes, least significant byte
// first.
func procEndpoint(text string) (netip.AddrPort, bool) {
	ip, port, _ := strings.Cut(text, ":")
	b, err := hex.DecodeString(ip)
	if err != nil || len(b)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(b); i += 4 {
		slices.Reverse(b[i : i+4])
	}
	a, ok := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(a, uint16(hexNumber(port))), ok
}

// active returns the established TCP connections, numbered from 0.
func (n network) active() (*value.Map, error) {
	sockets, err := n.netstat()
	if err != nil {
		return nil, err
	}
	all := value.NewMap()
	for _, item := range sockets.Items {
		m := item.(*value.Map)
		if m.Value("state") != "ESTABLISHED" {
			continue
		}
		local, errL := netip.ParseAddrPort(value.Str(m.Value("local-address")))
		remote, errR := netip.ParseAddrPort(value.Str(m.Value("remote-address")))
		if err := errors.Join(errL, errR); err != nil {
			return nil, err
		}
		_ = all.SetKey(all.Len(), value.NewMap("local_addr", local.Addr().Unmap().String(), "local_port",
			strconv.Itoa(int(local.Port())),
			"remote_addr", remote.Addr().Unmap().String(), "remote_port", strconv.Itoa(int(remote.Port()))))
	}
	return all, nil
}

// neighbours returns the addresses in the neighbour table, by hardware address.
func (n network) neighbours() (*value.Map, error) {
	text, err := function.ReadText(n.Host, "/proc/net/arp")
	all := value.NewMap()
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) >= 6 && f[0] != "IP" && f[3] != "00:00:00:00:00:00" {
			all.Set(f[3], f[0])
		}
	}
	return all, err
}
