// Package network implements network.*: the links, addresses, routes and sockets of the host, and calculations with
// addresses.
package network

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
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

// dig returns the addresses of a name, one per line.
func (n network) dig(ctx context.Context, name string) (string, error) {
	found, err := n.Records(ctx, "A", name, "")
	return strings.Join(found, "\n"), err
}
