package grains

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Interface is a network interface with its addresses, each kind in the kernel's order.
type Interface struct {
	Name      string
	Hardware  string // such as 02:fc:00:00:00:01; "" if there is none
	IPv4      []netip.Addr
	IPv6      []netip.Addr
	Secondary []netip.Addr // further IPv4 addresses inside a network that the interface already has
}

func (c *collector) network() {
	all, err := c.Interfaces()
	if c.machineErrors.Note("the network interfaces", err) != nil {
		all = nil
	}
	byName, only4, only6, hardware := value.NewMap(), value.NewMap(), value.NewMap(), value.NewMap()
	var ip4, ip6 []netip.Addr
	for _, i := range all {
		four := slices.Concat(i.IPv4, i.Secondary)
		byName.Set(i.Name, addrList(slices.Concat(i.IPv4, i.IPv6, i.Secondary)))
		only4.Set(i.Name, addrList(four))
		only6.Set(i.Name, addrList(i.IPv6))
		if i.Hardware != "" {
			hardware.Set(i.Name, i.Hardware)
		}
		ip4, ip6 = append(ip4, four...), append(ip6, i.IPv6...)
	}
	c.set("ip_interfaces", byName)
	c.set("ip4_interfaces", only4)
	c.set("ip6_interfaces", only6)
	c.set("hwaddr_interfaces", hardware)
	c.set("ipv4", addrList(sorted(ip4)))
	c.set("ipv6", addrList(sorted(ip6)))
	c.gateways()
	c.dns()
}

func addrList(addrs []netip.Addr) *value.List {
	l := value.NewList()
	for _, a := range addrs {
		l.Append(a.WithZone("").Unmap().String())
	}
	return l
}

func sorted(addrs []netip.Addr) []netip.Addr {
	structsort.Func(addrs, netip.Addr.Compare)
	return slices.Compact(addrs)
}

// gateways sets ip4_gw and ip6_gw to the address of the default gateway, to True for a default route without a gateway,
// and to False without a route.
func (c *collector) gateways() {
	four := gateway4(c.machine.read("proc/net/route"))
	six := gateway6(c.machine.read("proc/net/ipv6_route"))
	c.set("ip_gw", four != false || six != false)
	c.set("ip4_gw", four)
	c.set("ip6_gw", six)
}

var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// gateway4 parses the kernel's table: interface, destination, gateway and so on, in hexadecimal and in the byte order
// of the machine.
func gateway4(table string) any {
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) < 8 || f[1] != "00000000" || f[7] != "00000000" {
			continue
		}
		b, err := hex.DecodeString(f[2])
		if err != nil || len(b) != 4 {
			continue
		}
		if littleEndian {
			slices.Reverse(b)
		}
		return viaOrTrue(b)
	}
	return false
}

// gateway6 parses destination, prefix length, source, prefix length, next hop, metric, two counters, flags and
// interface. The kernel lists an unreachable default on lo, which is not a route.
func gateway6(table string) any {
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) < 10 || f[1] != "00" || strings.Trim(f[0], "0") != "" || f[9] == "lo" {
			continue
		}
		if b, err := hex.DecodeString(f[4]); err == nil && len(b) == 16 {
			return viaOrTrue(b)
		}
	}
	return false
}

func viaOrTrue(address []byte) any {
	if a, ok := netip.AddrFromSlice(address); ok && !a.IsUnspecified() {
		return a.String()
	}
	return true
}
