package salt

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// address is an IP address from a template: alone, or with a prefix length.
type address struct {
	ip     netip.Addr
	bits   int
	prefix bool // text has a prefix
}

// parseAddress reads an address, with or without a prefix or netmask.
func parseAddress(v any) (address, bool) {
	switch v := v.(type) {
	case int:
		if v >= 0 && v <= 0xffffffff {
			ip := netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)})
			return address{ip: ip, bits: 32}, true
		}
	case []byte:
		ip, ok := netip.AddrFromSlice(v)
		return address{ip: ip, bits: ip.BitLen()}, ok
	case string:
		text, mask, prefix := strings.Cut(v, "/")
		ip, err := netip.ParseAddr(text)
		if err != nil {
			return address{}, false
		}
		a := address{ip: ip, bits: ip.BitLen(), prefix: prefix}
		if prefix {
			a.bits = maskBits(mask, ip)
		}
		return a, a.bits >= 0
	}
	return address{}, false
}

// maskBits returns the length of a prefix that is given as a number, a netmask or a host mask; -1 if it is none of
// these.
func maskBits(mask string, ip netip.Addr) int {
	if n, err := strconv.ParseUint(mask, 10, 16); err == nil && int(n) <= ip.BitLen() {
		return int(n)
	}
	m, err := netip.ParseAddr(mask)
	if err != nil || !m.Is4() || !ip.Is4() {
		return -1
	}
	b := m.As4()
	text := fmt.Sprintf("%08b%08b%08b%08b", b[0], b[1], b[2], b[3])
	ones, zeros := len(text)-len(strings.TrimLeft(text, "1")), len(text)-len(strings.TrimLeft(text, "0"))
	switch {
	case !strings.Contains(text[ones:], "1"):
		return ones
	case !strings.Contains(text[zeros:], "0"):
		return zeros
	}
	return -1
}

// String returns the address as Python prints it: an IPv4 address inside IPv6 in hexadecimal.
func (a address) String() string {
	s := a.ip.String()
	if a.ip.Is4In6() {
		b := a.ip.As16()
		s = fmt.Sprintf("::ffff:%x:%x", int(b[12])<<8|int(b[13]), int(b[14])<<8|int(b[15]))
		if z := a.ip.Zone(); z != "" {
			s += "%" + z
		}
	}
	if a.prefix {
		s += "/" + strconv.Itoa(a.bits)
	}
	return s
}

func (a address) version() int {
	if a.ip.Is4() {
		return 4
	}
	return 6
}

// network returns the network that the address is in.
func (a address) network() netip.Prefix {
	return netip.PrefixFrom(a.ip.WithZone(""), a.bits).Masked()
}

// size returns the number of addresses of the network.
func (a address) size() (any, error) { return value.Pow(2, a.ip.BitLen()-a.bits) }

// hosts calls found with every host address of the network.
func (a address) hosts(found func(address) error) error {
	n := a.network()
	first, free := n.Addr(), a.ip.BitLen()-a.bits
	last := broadcast(n)
	if free > 1 {
		first = first.Next()
		if a.ip.Is4() {
			last = last.Prev()
		}
	}
	for ip := first; ; ip = ip.Next() {
		if err := found(address{ip: ip}); err != nil || ip == last {
			return err
		}
	}
}

// broadcast returns the last address of a network.
func broadcast(n netip.Prefix) netip.Addr {
	b := n.Addr().AsSlice()
	for i := n.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	ip, _ := netip.AddrFromSlice(b)
	return ip
}

// is reports whether the address is of a kind. It returns true for an unknown kind.
func (a address) is(kind string) bool {
	ip := a.ip.WithZone("")
	switch kind {
	case "global", "public":
		return !isPrivate(ip)
	case "private":
		return isPrivate(ip)
	case "link-local", "linklocal", "ll", "link_local":
		return ip.IsLinkLocalUnicast() && !ip.Is4In6()
	case "loopback", "lo":
		return ip.IsLoopback() && !ip.Is4In6() && (ip.Is4() || !a.prefix || a.bits == 128)
	case "multicast":
		return ip.IsMulticast() && !ip.Is4In6()
	case "reserved":
		return isReserved(ip)
	case "site-local", "sl", "site_local":
		return within(ip, "fec0::/10")
	case "unspecified":
		return ip.IsUnspecified() && (ip.Is4() || !a.prefix || a.bits == 128)
	}
	return true
}

// isPrivate reports whether an address is not globally reachable according to the registries of IANA.
func isPrivate(ip netip.Addr) bool {
	return within(ip,
		"0.0.0.0/8", "10.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
		"192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
		"::/127", "::ffff:0:0/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "fc00::/7",
		"fe80::/10",
	) && !within(ip,
		"192.0.0.9/32", "192.0.0.10/32",
		"2001:1::1/128", "2001:1::2/128", "2001:3::/32", "2001:4:112::/48", "2001:20::/28", "2001:30::/28",
	)
}

func isReserved(ip netip.Addr) bool {
	return within(ip, "240.0.0.0/4", "::/8", "100::/8", "200::/7", "400::/6", "800::/5", "1000::/4", "4000::/3",
		"6000::/3", "8000::/3", "a000::/3", "c000::/3", "e000::/4", "f000::/5", "f800::/6", "fe00::/9")
}

func within(ip netip.Addr, networks ...string) bool {
	for _, n := range networks {
		if netip.MustParsePrefix(n).Contains(ip) {
			return true
		}
	}
	return false
}
