package network

import (
	"fmt"
	"math/big"
	"net/netip"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// calculations returns the functions of network that do not read the host.
func calculations() function.Table {
	return function.Table{
		"network.calc_net":     function.Of("ip_addr, netmask=None", calcNet),
		"network.convert_cidr": function.Of("cidr", convertCIDR),
		"network.ip_in_subnet": function.Of("ip_addr, cidr", inSubnet),
		"network.is_private":   function.Of("ip_addr", func(text string) (bool, error) { return address(text, isPrivate) }),
		"network.is_loopback": function.Of("ip_addr", func(text string) (bool, error) {
			return address(text, netip.Addr.IsLoopback)
		}),
		"network.reverse_ip": function.Of("ip_addr", reverseIP),
		"network.iphexval":   function.Of("ip", hexAddress),
	}
}

func address[T any](text string, of func(netip.Addr) T) (T, error) {
	a, err := netip.ParseAddr(text)
	if err != nil {
		var none T
		return none, value.Raise("ValueError", "%q is not an address", text)
	}
	return of(a), nil
}

// parseNetwork parses an address with a prefix length or a mask. An address without either is a network by itself.
// Host bits are cleared.
func parseNetwork(text string) (netip.Prefix, error) {
	host, mask, hasMask := strings.Cut(text, "/")
	a, err := netip.ParseAddr(host)
	bits := a.BitLen()
	if err == nil && hasMask {
		bits, err = maskBits(mask, a.Is4())
	}
	if err != nil || bits > a.BitLen() {
		return netip.Prefix{}, value.Raise("ValueError", "%q is not a network", text)
	}
	return netip.PrefixFrom(a, bits).Masked(), nil
}

// maskBits parses a prefix length such as 24, a netmask such as 255.255.255.0, or a wildcard mask such as 0.0.0.255.
func maskBits(mask string, four bool) (int, error) {
	if n, err := strconv.ParseUint(mask, 10, 8); err == nil {
		return int(n), nil
	}
	a, err := netip.ParseAddr(mask)
	if err != nil || !four || !a.Is4() {
		return 0, fmt.Errorf("%q is not a mask", mask)
	}
	b := a.As4()
	n := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	for bits := range 33 {
		ones := ^uint32(0) << (32 - bits)
		if n == ones || n == ^ones {
			return bits, nil
		}
	}
	return 0, fmt.Errorf("%q is not a mask", mask)
}

func calcNet(ip string, mask any) (string, error) {
	if mask != nil {
		ip += "/" + value.Str(mask)
	}
	p, err := parseNetwork(ip)
	return p.String(), err
}

func convertCIDR(cidr string) (*value.Map, error) {
	p, err := parseNetwork(cidr)
	if err != nil {
		return nil, err
	}
	return value.NewMap("network", p.Addr().String(), "netmask", netmask(p), "broadcast", broadcast(p).String()), nil
}

// inSubnet reports whether at least one of the addresses is in a network. A network with host bits set contains
// nothing.
func inSubnet(addresses any, cidr string) (bool, error) {
	list, err := function.Texts(addresses)
	if _, none := parseNetwork(cidr); none != nil || err != nil {
		return false, err
	}
	for _, text := range list {
		in, err := address(text, func(a netip.Addr) bool { return contains(cidr, a) })
		if in || err != nil {
			return in, err
		}
	}
	return false, nil
}

func contains(cidr string, a netip.Addr) bool {
	p, err := parseNetwork(cidr)
	host, _, _ := strings.Cut(cidr, "/")
	return err == nil && p.Addr().String() == normalAddress(host) && p.Contains(a)
}

func normalAddress(text string) string {
	a, err := netip.ParseAddr(text)
	if err != nil {
		return text
	}
	return a.String()
}

// netmask formats a prefix length as an address.
func netmask(p netip.Prefix) string {
	ones := make([]byte, p.Addr().BitLen()/8)
	for i := range p.Bits() {
		ones[i/8] |= 0x80 >> (i % 8)
	}
	a, _ := netip.AddrFromSlice(ones)
	return a.String()
}

// broadcast returns the last address of a network.
func broadcast(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

func networkDetails(p netip.Prefix) *value.Map {
	size := new(big.Int).Lsh(big.NewInt(1), uint(p.Addr().BitLen()-p.Bits()))
	var count any = size
	if size.IsInt64() {
		count = int(size.Int64())
	}
	first := p.Masked().Addr()
	return value.NewMap("address", first.String(), "netmask", netmask(p), "num_addresses", count, "prefixlen", p.Bits())
}

// isPrivate reports whether an address is not routed on the public network.
func isPrivate(a netip.Addr) bool {
	a = a.Unmap()
	for _, text := range []string{
		"0.0.0.0/8", "10.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/29", "192.0.0.170/31",
		"192.0.2.0/24",
		"192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4", "255.255.255.255/32",
		"::1/128", "::/128", "100::/64", "2001::/23", "2001:2::/48", "2001:db8::/32", "2001:10::/28", "fc00::/7", "fe80::/10",
	} {
		if netip.MustParsePrefix(text).Contains(a) {
			return true
		}
	}
	return false
}

func reverseIP(text string) (string, error) {
	a, err := netip.ParseAddr(text)
	if err != nil {
		return "", value.Raise("ValueError", "%q is not an address", text)
	}
	var parts []string
	for _, b := range a.AsSlice() {
		if a.Is4() {
			parts = append([]string{strconv.Itoa(int(b))}, parts...)
		} else {
			parts = append([]string{fmt.Sprintf("%x.%x", b&15, b>>4)}, parts...)
		}
	}
	if a.Is4() {
		return strings.Join(parts, ".") + ".in-addr.arpa", nil
	}
	return strings.Join(parts, ".") + ".ip6.arpa", nil
}

func hexAddress(text string) (string, error) {
	return address(text, func(a netip.Addr) string { return fmt.Sprintf("%X", a.AsSlice()) })
}
