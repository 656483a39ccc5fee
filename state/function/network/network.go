// Package network implements network.*: the links, addresses, routes and sockets of the host, and calculations with
// addresses.
package network

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/value"
)

type network struct{ *function.Facts }

// Functions returns the functions of network that templates may call.
func Functions(f *function.Facts) function.Table {
	n := network{f}
	return function.Table{
		"network.interfaces":   function.Of("", n.interfaces),
		"network.interface":    function.Of("iface", n.ofLink("inet")),
		"network.interface_ip": function.Of("iface", n.linkAddress),
		"network.hw_addr":      function.Of("iface", n.ofLink("hwaddr")),
		"network.hwaddr":       function.Of("iface", n.ofLink("hwaddr")),
		"network.ip_addrs": function.Of("interface=None, include_loopback=False, cidr=None, type=None",
			n.addresses(false)),
		"network.ipaddrs": function.Of("interface=None, include_loopback=False, cidr=None, type=None",
			n.addresses(false)),
		"network.ip_addrs6": function.Of("interface=None, include_loopback=False, cidr=None, type=None",
			n.addresses(true)),
		"network.ipaddrs6": function.Of("interface=None, include_loopback=False, cidr=None, type=None",
			n.addresses(true)),
		"network.ip_networks":     function.Of("interface=None, include_loopback=False, verbose=False", n.networks(false)),
		"network.ip_networks6":    function.Of("interface=None, include_loopback=False, verbose=False", n.networks(true)),
		"network.subnets":         function.Of("interfaces=None", n.subnets),
		"network.subnets6":        function.Of("", n.subnets6),
		"network.in_subnet":       function.Of("cidr", n.inSubnet),
		"network.ifacestartswith": function.Of("cidr", n.linksStarting),
		"network.get_hostname":    function.Of("", n.Hostname),
		"network.get_fqdn":        function.Of("", n.fqdn),
		"network.routes":          function.Of("family=None", n.routes),
		"network.default_route":   function.Of("family=None", n.defaultRoute),
		"network.dig":             function.Of("host", n.dig),
	}.Add(calculations(), sockets(n))
}

func (n network) links() ([]function.Link, error) {
	if n.Network == nil {
		return nil, errors.New("the network of this host cannot be read")
	}
	return n.Network.Links()
}

// interfaces returns all links with their attributes.
func (n network) interfaces() (*value.Map, error) {
	links, err := n.links()
	all := value.NewMap()
	for _, l := range links {
		all.Set(l.Name, describeLink(l))
	}
	return all, err
}

func describeLink(l function.Link) *value.Map {
	m := value.NewMap("up", l.Up)
	if l.Hardware != "" {
		m.Set("hwaddr", l.Hardware)
	}
	for _, a := range l.Addresses {
		kind, entry := describeAddress(a)
		list, ok := m.Value(kind).(*value.List)
		if !ok {
			list = value.NewList()
			m.Set(kind, list)
		}
		list.Append(entry)
	}
	return m
}

func describeAddress(a function.Address) (kind string, entry *value.Map) {
	entry, family := value.NewMap(), "inet6"
	if a.Addr().Is4() {
		family = "inet"
	}
	if kind = family; a.Secondary {
		kind = "secondary"
		entry.Set("type", family)
	}
	entry.Set("address", a.Addr().WithZone("").String())
	if family == "inet6" {
		entry.Set("prefixlen", fmt.Sprint(a.Bits()))
		entry.Set("scope", a.Scope)
		return kind, entry
	}
	entry.Set("netmask", netmask(a.Prefix))
	entry.Set("broadcast", nil)
	if a.Broadcast.IsValid() {
		entry.Set("broadcast", a.Broadcast.String())
	}
	entry.Set("label", a.Label)
	return kind, entry
}

// link returns a link by name. For one that does not exist it returns a sentence instead of an error, as in Salt.
func (n network) link(name string) (l function.Link, sentence string, err error) {
	links, err := n.links()
	names := make([]string, len(links))
	for i, l := range links {
		if l.Name == name {
			return l, "", nil
		}
		names[i] = l.Name
	}
	sentence = fmt.Sprintf("Interface %q is none of %s", name, strings.Join(names, ", "))
	return function.Link{}, sentence, err
}

func (n network) ofLink(what string) func(string) (any, error) {
	return func(name string) (any, error) {
		l, sentence, err := n.link(name)
		if err != nil || sentence != "" {
			return sentence, err
		}
		if v, ok := describeLink(l).Get(what); ok {
			return v, nil
		}
		return "", nil
	}
}

func (n network) linkAddress(name string) (string, error) {
	l, sentence, err := n.link(name)
	for _, a := range l.Addresses {
		if a.Addr().Is4() && !a.Secondary {
			return a.Addr().String(), nil
		}
	}
	return sentence, err
}

// prefixes returns the addresses of a family with their networks, for links whose names match one of the globs,
// sorted.
func (n network) prefixes(six bool, names []string, loopback bool) ([]netip.Prefix, error) {
	links, err := n.links()
	var found []netip.Prefix
	for _, l := range links {
		if names != nil && !slices.ContainsFunc(names, func(glob string) bool { return value.Glob(glob, l.Name) }) {
			continue
		}
		for _, a := range l.Addresses {
			if a.Addr().Is6() == six && (loopback || !a.Addr().IsLoopback()) {
				found = append(found, netip.PrefixFrom(a.Addr().WithZone(""), a.Bits()))
			}
		}
	}
	structsort.Func(found, func(a, b netip.Prefix) int { return a.Addr().Compare(b.Addr()) })
	return slices.CompactFunc(found, func(a, b netip.Prefix) bool { return a.Addr() == b.Addr() }), err
}

func (n network) addresses(six bool) func(names any, loopback bool, cidr, kind string) ([]string, error) {
	return func(names any, loopback bool, cidr, kind string) ([]string, error) {
		prefixes, err := n.prefixes(six, function.CommaList(names), loopback)
		if err != nil {
			return nil, err
		}
		list := []string{}
		for _, p := range prefixes {
			a := p.Addr()
			switch {
			case cidr != "" && !contains(cidr, a):
			case cidr == "" && kind == "public" && isPrivate(a):
			case cidr == "" && kind == "private" && !isPrivate(a):
			default:
				list = append(list, a.String())
			}
		}
		return list, nil
	}
}

// networks returns the networks of the host's addresses, with their sizes if verbose is true.
func (n network) networks(six bool) func(names any, loopback, verbose bool) (any, error) {
	return func(links any, loopback, verbose bool) (any, error) {
		prefixes, err := n.prefixes(six, function.CommaList(links), loopback)
		if err != nil {
			return nil, err
		}
		names, details := value.NewList(), value.NewMap()
		for _, p := range prefixes {
			text := p.Masked().String()
			if !details.Has(text) {
				names.Append(text)
				details.Set(text, networkDetails(p))
			}
		}
		if verbose {
			return details, nil
		}
		return names, nil
	}
}

func (n network) subnets(names any) ([]string, error) {
	wanted, err := function.Texts(names)
	if err != nil {
		return nil, err
	}
	return n.networkNames(false, wanted)
}

func (n network) subnets6() ([]string, error) { return n.networkNames(true, nil) }

func (n network) networkNames(six bool, links []string) ([]string, error) {
	all, err := n.prefixes(six, links, false)
	if err != nil {
		return nil, err
	}
	for i, p := range all {
		all[i] = p.Masked()
	}
	structsort.Func(all, netip.Prefix.Compare)
	names := []string{}
	for _, p := range slices.Compact(all) {
		names = append(names, p.String())
	}
	return names, nil
}

// inSubnet reports whether one of the host's addresses lies in a network.
func (n network) inSubnet(cidr string) (bool, error) {
	for _, six := range []bool{false, true} {
		prefixes, err := n.prefixes(six, nil, false)
		if err != nil {
			return false, err
		}
		for _, p := range prefixes {
			if contains(cidr, p.Addr()) {
				return true, nil
			}
		}
	}
	return false, nil
}

// linksStarting returns the links that have an address with the given prefix of text.
func (n network) linksStarting(start any) ([]string, error) {
	links, err := n.links()
	names := []string{}
	for _, l := range links {
		for _, a := range l.Addresses {
			if a.Addr().Is4() && !a.Secondary && strings.HasPrefix(a.Addr().String(), value.Str(start)) {
				names = append(names, a.Label)
			}
		}
	}
	return names, err
}

func (n network) fqdn() string { return n.FirstGrain("fqdn", "nodename") }

// routes returns the kernel's routes in the format of netstat.
func (n network) routes(family string) (*value.List, error) {
	if !slices.Contains([]string{"", "inet", "inet6"}, family) {
		return nil, diag.WithHint(fmt.Errorf("there is no address family %s", family), "use inet or inet6")
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

// dig returns the addresses of a name, one per line.
func (n network) dig(ctx context.Context, name string) (string, error) {
	found, err := n.Records(ctx, "A", name, "")
	return strings.Join(found, "\n"), err
}
