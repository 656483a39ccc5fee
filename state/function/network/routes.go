package network

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// routes returns the kernel's routes in the format of netstat.
func (n network) routes(family string) (*value.List, error) {
	if !slices.Contains([]string{"", "inet", "inet6"}, family) {
		return nil, diag.Call.Hint(fmt.Errorf("there is no address family %s", family), "use inet or inet6")
	}
	all := value.NewList()
	if family != "inet6" {
		text, _ := function.ReadText(n.Host, "/proc/net/route") // a host without it has no routes
		addRoutes(all, text, route4)
	}
	if family != "inet" {
		text, _ := function.ReadText(n.Host, "/proc/net/ipv6_route")
		addRoutes(all, text, route6)
	}
	return all, nil
}

func addRoutes(all *value.List, table string, read func([]string) (*value.Map, bool)) {
	for line := range strings.Lines(table) {
		if route, ok := read(strings.Fields(line)); ok {
			all.Append(route)
		}
	}
}

// route4 parses a line of the kernel's IPv4 table: interface, destination, gateway, flags, three counters and mask.
// Numbers are hexadecimal in the byte order of the machine, which is little endian here.
func route4(f []string) (*value.Map, bool) {
	if len(f) < 8 || len(f[1]) != 8 {
		return nil, false
	}
	destination, ok := reversed4(f[1])
	gateway, okG := reversed4(f[2])
	mask, okM := reversed4(f[7])
	if !ok || !okG || !okM {
		return nil, false
	}
	flags := "U"
	if gateway != "0.0.0.0" {
		flags = "UG"
	}
	return value.NewMap("addr_family", "inet", "destination", destination, "gateway", gateway, "netmask", mask, "flags",
		flags,
		"interface", f[0]), true
}

func reversed4(text string) (string, bool) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != 4 {
		return "", false
	}
	return netip.AddrFrom4([4]byte{b[3], b[2], b[1], b[0]}).String(), true
}

// route6 parses destination, prefix length, source, its length, next hop, metric, two counters, flags and
// interface. Routes on lo are internal to the kernel.
func route6(f []string) (*value.Map, bool) {
	if len(f) < 10 || f[9] == "lo" {
		return nil, false
	}
	destination, okD := address6(f[0])
	hop, okH := address6(f[4])
	bits, err := hex.DecodeString(f[1])
	if !okD || !okH || err != nil || len(bits) != 1 {
		return nil, false
	}
	flags := "U"
	if hop != "::" {
		flags = "UG"
	}
	return value.NewMap("addr_family", "inet6", "destination", fmt.Sprintf("%s/%d", destination, bits[0]), "gateway", hop,
		"netmask", "", "flags", flags, "interface", f[9]), true
}

func address6(text string) (string, bool) {
	b, err := hex.DecodeString(text)
	a, ok := netip.AddrFromSlice(b)
	return a.String(), err == nil && ok && a.Is6()
}

func (n network) defaultRoute(family string) (*value.List, error) {
	all, err := n.routes(family)
	if err != nil {
		return nil, err
	}
	found := value.NewList()
	for _, item := range all.Items {
		route := item.(*value.Map)
		if to := route.Value("destination"); to == "::/0" || to == "0.0.0.0" && route.Value("netmask") == "0.0.0.0" {
			found.Append(route)
		}
	}
	return found, nil
}
