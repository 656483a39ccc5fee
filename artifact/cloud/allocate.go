package cloud

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/netip"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Prefix lengths of the networks of nodes.
const (
	nodeBits4  = 24
	nodeBits6  = 64
	cloudBits6 = 48
)

// Allocate sets the values that a cloud leaves open: networks of nodes, and IDs, addresses and SSH ports of guests. It
// never changes a value that is set, and never chooses a value that is in use. Addresses and ports continue after the
// highest one in use, so that freed values are reused as late as possible. IDs and the cloud's IPv6 network are read
// from random.
func (c *Cloud) Allocate(random io.Reader) error {
	if c.Range6 == "" {
		network, err := uniqueLocal(random)
		if err != nil {
			return err
		}
		c.Range6 = network
	}
	if c.Range4 == "" {
		c.Range4 = DefaultRange4
	}
	for _, name := range sortedKeys(c.Nodes) {
		if err := c.allocateNode(name); err != nil {
			return err
		}
	}
	used := c.used()
	for _, name := range sortedKeys(c.Classes) {
		if err := c.allocateClass(name, func() (string, error) { return newID(random, "choosing an ID") }); err != nil {
			return err
		}
	}
	for _, name := range sortedKeys(c.Guests) {
		if err := c.allocateGuest(name, random, used); err != nil {
			return err
		}
	}
	return c.allocateAccess()
}

// inUse has the addresses and ports that guests use, and those that deleted guests had.
type inUse struct {
	addresses, formerAddresses map[netip.Addr]bool
	ports, formerPorts         map[int]bool
}

// used returns the addresses and ports that guests use.
func (c *Cloud) used() inUse {
	u := inUse{addresses: map[netip.Addr]bool{}, formerAddresses: map[netip.Addr]bool{}, ports: map[int]bool{},
		formerPorts: map[int]bool{}}
	for _, g := range c.Guests {
		u.ports[g.SSHPort] = true
		addAddresses(u.addresses, g.Address4, g.Address6)
	}
	for _, d := range c.Deleted {
		if d.SSHPort != 0 {
			u.formerPorts[d.SSHPort] = true
		}
		addAddresses(u.formerAddresses, d.Address4, d.Address6)
	}
	return u
}

func addAddresses(all map[netip.Addr]bool, texts ...string) {
	for _, text := range texts {
		if addr, err := netip.ParseAddr(text); err == nil {
			all[addr] = true
		}
	}
}

// uniqueLocal returns a random unique local network (RFC 4193).
func uniqueLocal(random io.Reader) (string, error) {
	addr := [16]byte{0xfd}
	if _, err := io.ReadFull(random, addr[1:6]); err != nil {
		return "", fmt.Errorf("choosing a network: %w", err)
	}
	return netip.PrefixFrom(netip.AddrFrom16(addr), cloudBits6).String(), nil
}

func (c *Cloud) allocateNode(name string) error {
	n := c.Nodes[name]
	var used []netip.Prefix
	for _, other := range c.Nodes {
		for _, text := range []string{other.Range4, other.Range6} {
			if prefix, err := netip.ParsePrefix(text); err == nil {
				used = append(used, prefix)
			}
		}
	}
	for _, open := range []struct {
		to   *string
		from string
		bits int
	}{{&n.Range4, c.Range4, nodeBits4}, {&n.Range6, c.Range6, nodeBits6}} {
		if *open.to != "" {
			continue
		}
		network, err := freeNetwork(open.from, open.bits, used)
		if err != nil {
			return fmt.Errorf("choosing a network for node %s: %w", name, err)
		}
		*open.to = network.String()
	}
	c.Nodes[name] = n
	return nil
}

// freeNetwork returns the first network with bits prefix bits in from that overlaps no used network.
func freeNetwork(from string, bits int, used []netip.Prefix) (netip.Prefix, error) {
	all, err := netip.ParsePrefix(from)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("the cloud's network: %w", err)
	}
	candidate := netip.PrefixFrom(all.Addr(), max(bits, all.Bits()))
	for all.Contains(candidate.Addr()) {
		taken := false
		for _, u := range used {
			if taken = u.Overlaps(candidate); taken {
				if u.Bits() < candidate.Bits() { // step over the whole of the larger one
					candidate = netip.PrefixFrom(candidate.Addr(), u.Bits()).Masked()
				}
				break
			}
		}
		if !taken {
			return candidate, nil
		}
		following := following(candidate)
		if !following.IsValid() {
			break
		}
		candidate = netip.PrefixFrom(following, max(bits, all.Bits()))
	}
	return netip.Prefix{}, diag.Cloud.Hint(fmt.Errorf("%s has no free network of %d bits", from, bits),
		"give the node one with --range4 or --range6")
}

// following returns the first address after a network, or the zero Addr if there is none.
func following(p netip.Prefix) netip.Addr {
	bytes := p.Masked().Addr().AsSlice()
	for bit := p.Bits() - 1; bit >= 0; bit-- { // adds 1 to the number that the prefix bits represent
		mask := byte(0x80) >> (bit % 8)
		if bytes[bit/8]&mask == 0 {
			bytes[bit/8] |= mask
			addr, _ := netip.AddrFromSlice(bytes)
			return addr
		}
		bytes[bit/8] &^= mask
	}
	return netip.Addr{}
}

// allocateGuest sets the values that a guest leaves open, and adds them to used.
func (c *Cloud) allocateGuest(name string, random io.Reader, used inUse) error {
	g := c.Guests[name]
	node := c.Nodes[g.Node]
	if g.ID == "" {
		id, err := newID(random, "choosing an ID")
		if err != nil {
			return err
		}
		g.ID = id
	}
	for _, open := range []struct {
		to      *string
		network string
	}{{&g.Address4, node.Range4}, {&g.Address6, node.Range6}} {
		if *open.to != "" || open.network == "" {
			continue
		}
		addr, err := freeAddress(open.network, used, func(addr netip.Addr) bool { return c.kept(node, addr) })
		if err != nil {
			return fmt.Errorf("choosing an address for guest %s on node %s: %w", name, g.Node, err)
		}
		*open.to, used.addresses[addr] = addr.String(), true
	}
	if g.SSHPort == 0 {
		port, err := c.freePort(used)
		if err != nil {
			return fmt.Errorf("choosing a port for guest %s: %w", name, err)
		}
		g.SSHPort, used.ports[port] = port, true
	}
	c.Guests[name] = g
	return nil
}

// freeAddress returns the address after the highest one that a guest has or had, or the first free one if there is none
// above it: one that no guest had, if possible. It returns none that is kept for members of classes.
func freeAddress(network string, used inUse, kept func(netip.Addr) bool) (netip.Addr, error) {
	prefix, err := netip.ParsePrefix(network)
	if err != nil {
		return netip.Addr{}, err
	}
	highest := Bridge(prefix)
	for _, all := range []map[netip.Addr]bool{used.addresses, used.formerAddresses} {
		for addr := range all {
			if prefix.Contains(addr) && highest.Less(addr) {
				highest = addr
			}
		}
	}
	for _, from := range []struct {
		start  netip.Addr
		former map[netip.Addr]bool
	}{{highest.Next(), nil}, {prefix.Addr(), used.formerAddresses}, {prefix.Addr(), nil}} {
		for addr := from.start; prefix.Contains(addr); addr = addr.Next() {
			if !used.addresses[addr] && !from.former[addr] && !reserved(prefix, addr) && !kept(addr) {
				return addr, nil
			}
		}
	}
	return netip.Addr{},
		diag.Cloud.Hint(fmt.Errorf("%s has no free address", network), "delete guests, or choose another node")
}

// newID returns an ID that is read from random.
func newID(random io.Reader, doing string) (string, error) {
	var id [16]byte
	if _, err := io.ReadFull(random, id[:]); err != nil {
		return "", fmt.Errorf("%s: %w", doing, err)
	}
	return hex.EncodeToString(id[:]), nil
}

// freePort returns a port that no guest has, and no member of a class.
func (c *Cloud) freePort(used inUse) (int, error) {
	kept := func(port int) bool {
		for _, of := range c.Classes {
			if port >= of.FirstPort && port < of.FirstPort+of.Max {
				return true
			}
		}
		return false
	}
	for {
		port, err := freeNumber("ports", used.ports, used.formerPorts, FirstPort, LastPort)
		if err != nil || !kept(port) {
			return port, err
		}
		used.ports[port] = true
	}
}

// freeNumber returns the number after the highest one that is or was in use, or the first free one if there is none
// above it: one that was not in use, if possible.
func freeNumber(what string, used, former map[int]bool, first, last int) (int, error) {
	highest := first - 1
	for _, all := range []map[int]bool{used, former} {
		for n := range all {
			highest = max(highest, n)
		}
	}
	for _, from := range []struct {
		start  int
		former map[int]bool
	}{{highest + 1, nil}, {first, former}, {first, nil}} {
		for n := from.start; n <= last; n++ {
			if !used[n] && !from.former[n] {
				return n, nil
			}
		}
	}
	return 0, diag.Cloud.Hint(fmt.Errorf("all %s of %d to %d are in use", what, first, last), "delete what is not needed")
}
