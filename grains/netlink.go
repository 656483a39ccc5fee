package grains

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
)

var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// interfaces asks the kernel for all links and then for all addresses. The net package asks for all
// addresses once per interface, which takes a host of containers tens of milliseconds.
func interfaces() ([]Interface, error) {
	links, err := dump(syscall.RTM_GETLINK, syscall.RTM_NEWLINK)
	if err != nil {
		return nil, err
	}
	addresses, err := dump(syscall.RTM_GETADDR, syscall.RTM_NEWADDR)
	if err != nil {
		return nil, err
	}
	all := make([]Interface, 0, len(links))
	index := map[uint32]int{}
	for _, m := range links {
		if i, number, ok := link(m); ok {
			index[number] = len(all)
			all = append(all, i)
		}
	}
	for _, m := range addresses {
		number, add, ok := address(m)
		if at, known := index[number]; ok && known {
			add(&all[at])
		}
	}
	return all, nil
}

func dump(ask, answer int) ([]syscall.NetlinkMessage, error) {
	data, err := syscall.NetlinkRIB(ask, syscall.AF_UNSPEC)
	if err != nil {
		return nil, fmt.Errorf("asking the kernel for network interfaces: %w", err)
	}
	messages, err := syscall.ParseNetlinkMessage(data)
	if err != nil {
		return nil, fmt.Errorf("asking the kernel for network interfaces: %w", err)
	}
	kept := messages[:0]
	for _, m := range messages {
		if int(m.Header.Type) == answer {
			kept = append(kept, m)
		}
	}
	return kept, nil
}

// link reads an interface out of its message: family, type and index, then attributes.
func link(m syscall.NetlinkMessage) (i Interface, number uint32, ok bool) {
	attrs, err := syscall.ParseNetlinkRouteAttr(&m)
	if err != nil || len(m.Data) < syscall.SizeofIfInfomsg {
		return Interface{}, 0, false
	}
	for _, a := range attrs {
		switch a.Attr.Type {
		case syscall.IFLA_IFNAME:
			i.Name = strings.TrimRight(string(a.Value), "\x00")
		case syscall.IFLA_ADDRESS:
			i.Hardware = hardwareAddress(a.Value)
		}
	}
	return i, binary.NativeEndian.Uint32(m.Data[4:]), i.Name != ""
}

// hardwareAddress writes the address of a link as `ip link` does: a tunnel has an IP address there.
func hardwareAddress(b []byte) string {
	if ip, ok := netip.AddrFromSlice(b); ok {
		return ip.String()
	}
	return net.HardwareAddr(b).String()
}

// address reads an address out of its message: family, prefix length, flags, scope and index, then
// attributes. Of the two ends of a point-to-point link the local one is meant.
func address(m syscall.NetlinkMessage) (number uint32, add func(*Interface), ok bool) {
	attrs, err := syscall.ParseNetlinkRouteAttr(&m)
	if err != nil || len(m.Data) < syscall.SizeofIfAddrmsg {
		return 0, nil, false
	}
	var ip netip.Addr
	for _, a := range attrs {
		if a.Attr.Type == syscall.IFA_LOCAL || a.Attr.Type == syscall.IFA_ADDRESS && !ip.IsValid() {
			ip, _ = netip.AddrFromSlice(a.Value)
		}
	}
	secondary := m.Data[2]&syscall.IFA_F_SECONDARY != 0
	return binary.NativeEndian.Uint32(m.Data[4:]), func(i *Interface) {
		switch {
		case ip.Is6():
			i.IPv6 = append(i.IPv6, ip)
		case secondary:
			i.Secondary = append(i.Secondary, ip)
		default:
			i.IPv4 = append(i.IPv4, ip)
		}
	}, ip.IsValid()
}
