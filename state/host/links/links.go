// Package links reads the network links of this machine, and their addresses, from the kernel.
//
// It requests all links once and all addresses once. The net package requests all addresses for each link, which takes
// tens of milliseconds on a host that runs many containers.
package links

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
)

// Link is a network interface.
type Link struct {
	Name      string
	Hardware  string // such as 02:fc:00:00:00:01; "" if there is none
	Up        bool
	Addresses []Address // in the order of the kernel
}

// Address is an address of a link.
type Address struct {
	netip.Prefix
	Broadcast netip.Addr // of IPv4; invalid if there is none
	Label     string     // of IPv4: the link's name, or an alias of it
	Scope     string     // global, link or host
	Secondary bool       // an additional address in a network of the link
}

// All returns all links with their addresses.
func All() ([]Link, error) {
	messages, err := netlink(syscall.RTM_GETLINK, syscall.RTM_NEWLINK)
	if err != nil {
		return nil, err
	}
	var all []Link
	index := map[uint32]int{}
	for _, m := range messages {
		if l, number, ok := readLink(m); ok {
			index[number] = len(all)
			all = append(all, l)
		}
	}
	return all, addAddresses(all, index)
}

// addAddresses adds their addresses to links. index maps the kernel's link numbers to positions in all.
func addAddresses(all []Link, index map[uint32]int) error {
	messages, err := netlink(syscall.RTM_GETADDR, syscall.RTM_NEWADDR)
	for _, m := range messages {
		a, number, ok := readAddress(m)
		if i, known := index[number]; ok && known {
			if a.Label == "" {
				a.Label = all[i].Name
			}
			all[i].Addresses = append(all[i].Addresses, a)
		}
	}
	return err
}

// netlink sends a request to the kernel and returns the answers of one kind.
func netlink(request int, answer uint16) ([]syscall.NetlinkMessage, error) {
	data, err := syscall.NetlinkRIB(request, syscall.AF_UNSPEC)
	if err != nil {
		return nil, fmt.Errorf("reading network links from the kernel: %w", err)
	}
	messages, err := syscall.ParseNetlinkMessage(data)
	if err != nil {
		return nil, fmt.Errorf("reading network links from the kernel: %w", err)
	}
	kept := messages[:0]
	for _, m := range messages {
		if m.Header.Type == answer {
			kept = append(kept, m)
		}
	}
	return kept, nil
}

// readLink reads family, type, index and flags, and then attributes.
func readLink(m syscall.NetlinkMessage) (l Link, number uint32, ok bool) {
	attributes, err := syscall.ParseNetlinkRouteAttr(&m)
	if err != nil || len(m.Data) < syscall.SizeofIfInfomsg {
		return l, 0, false
	}
	for _, a := range attributes {
		switch a.Attr.Type {
		case syscall.IFLA_IFNAME:
			l.Name = strings.TrimRight(string(a.Value), "\x00")
		case syscall.IFLA_ADDRESS:
			l.Hardware = hardware(a.Value)
		}
	}
	l.Up = binary.NativeEndian.Uint32(m.Data[8:])&syscall.IFF_UP != 0
	return l, binary.NativeEndian.Uint32(m.Data[4:]), l.Name != ""
}

// hardware formats the hardware address of a link as `ip link` does: that of a tunnel is an IP address.
func hardware(b []byte) string {
	if ip, ok := netip.AddrFromSlice(b); ok {
		return ip.String()
	}
	return net.HardwareAddr(b).String()
}

// readAddress reads family, prefix length, flags, scope and index, and then attributes. Of a point-to-point link it
// returns the local address.
func readAddress(m syscall.NetlinkMessage) (a Address, number uint32, ok bool) {
	attributes, err := syscall.ParseNetlinkRouteAttr(&m)
	if err != nil || len(m.Data) < syscall.SizeofIfAddrmsg {
		return a, 0, false
	}
	var ip netip.Addr
	for _, attribute := range attributes {
		switch attribute.Attr.Type {
		case syscall.IFA_LOCAL:
			ip, _ = netip.AddrFromSlice(attribute.Value)
		case syscall.IFA_ADDRESS:
			if !ip.IsValid() {
				ip, _ = netip.AddrFromSlice(attribute.Value)
			}
		case syscall.IFA_BROADCAST:
			a.Broadcast, _ = netip.AddrFromSlice(attribute.Value)
		case syscall.IFA_LABEL:
			a.Label = strings.TrimRight(string(attribute.Value), "\x00")
		}
	}
	a.Prefix = netip.PrefixFrom(ip, int(m.Data[1]))
	a.Secondary = ip.Is4() && m.Data[2]&syscall.IFA_F_SECONDARY != 0
	a.Scope = scope(m.Data[3])
	return a, binary.NativeEndian.Uint32(m.Data[4:]), ip.IsValid()
}

// scope returns the name of the scope of an address.
func scope(n byte) string {
	switch n {
	case syscall.RT_SCOPE_HOST:
		return "host"
	case syscall.RT_SCOPE_LINK:
		return "link"
	}
	return "global"
}
