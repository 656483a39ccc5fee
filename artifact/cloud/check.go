package cloud

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// mostSlots is the maximum number of slots of a node.
const mostSlots = 1000

// longestLabel is the maximum length, in characters, of the first part of a hostname.
const longestLabel = 63

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func joined(names []string) string { return strings.Join(names, ", ") }

// Check returns the mistakes in a cloud as a whole: references to objects that do not exist, and addresses, ports and
// names of two guests. It does not check single values.
func (c *Cloud) Check() error {
	return c.check(func(path string) diag.Pos { return diag.Pos{File: Name} })
}

func (c *Cloud) check(at func(path string) diag.Pos) error {
	k := &checking{cloud: c, at: at, taken: map[string]string{}}
	if c.Form != form {
		k.add("form", fmt.Sprintf("upgrade this program: it reads form %d", form), "form is %d", c.Form)
	}
	k.nodes()
	k.ranges()
	for _, name := range sortedKeys(c.Guests) {
		k.guest(name, c.Guests[name])
	}
	for _, name := range sortedKeys(c.Classes) {
		k.class(name, c.Classes[name])
	}
	k.access()
	return k.problems.Err()
}

type checking struct {
	cloud    *Cloud
	at       func(path string) diag.Pos
	taken    map[string]string // values that only one guest may have, with the path of each
	problems diag.List
}

func (k *checking) add(path, hint, format string, args ...any) {
	k.problems.Add(k.at(path), "%s: %s", path, fmt.Sprintf(format, args...)).WithHint(diag.Cloud, hint)
}

// once reports a value that another guest has, too.
func (k *checking) once(path, what, value string) {
	if other, taken := k.taken[what+value]; taken {
		k.add(path, cureTaken(path), "%s %s is that of %s", what, value, other)
		return
	}
	k.taken[what+value] = path
}

// cureTaken returns a hint about a value that two objects have. Corpus itself chooses only addresses, ports and IDs of
// guests.
func cureTaken(path string) string {
	if strings.HasPrefix(path, "nodes.") || strings.HasSuffix(path, ".names") || strings.Count(path, ".") == 1 {
		return "give one of them another one"
	}
	return "omit it in one of them, and corpus chooses another one"
}

func (k *checking) nodes() {
	for _, name := range sortedKeys(k.cloud.Nodes) {
		n, path := k.cloud.Nodes[name], "nodes."+name
		if n.Slots < 1 || n.Slots > mostSlots {
			k.add(path+".slots", fmt.Sprintf("write a number of 1 to %d", mostSlots), "a node cannot have %s",
				diag.Count(n.Slots, "slot"))
		}
		if on := len(k.cloud.On(name)); on > n.Slots {
			k.add(path+".slots", "give it more slots, or delete guests", "it has %s and %s",
				diag.Count(on, "guest"), diag.Count(n.Slots, "slot"))
		}
		if n.Address != "" {
			k.once(path+".address", "the address", n.Address)
		}
		if k.cloud.Domain != "" {
			k.once(path, "the name", name+"."+k.cloud.Domain)
		}
	}
}

// ranges reports networks of nodes that overlap, and addresses of nodes that are in such a network.
func (k *checking) ranges() {
	type owned struct {
		path   string
		prefix netip.Prefix
	}
	var all []owned
	for _, name := range sortedKeys(k.cloud.Nodes) {
		n := k.cloud.Nodes[name]
		for key, text := range map[string]string{"range4": n.Range4, "range6": n.Range6} {
			if prefix, err := netip.ParsePrefix(text); err == nil {
				all = append(all, owned{"nodes." + name + "." + key, prefix})
			}
		}
	}
	slices.SortFunc(all, func(a, b owned) int { return a.prefix.Addr().Compare(b.prefix.Addr()) })
	for i := 1; i < len(all); i++ {
		if all[i-1].prefix.Overlaps(all[i].prefix) {
			k.add(all[i].path, "give each node a network of its own", "%s overlaps %s of %s", all[i].prefix, all[i-1].prefix,
				all[i-1].path)
		}
	}
	for _, name := range sortedKeys(k.cloud.Nodes) {
		addr, err := netip.ParseAddr(k.cloud.Nodes[name].Address)
		if i := slices.IndexFunc(all, func(o owned) bool { return o.prefix.Contains(addr) }); err == nil && i >= 0 {
			k.add("nodes."+name+".address", "give the address at which other hosts reach it", "%s is in %s, a network of guests",
				addr, all[i].prefix)
		}
	}
}

func (k *checking) guest(name string, g Guest) {
	path := "guests." + name
	node, known := k.cloud.Nodes[g.Node]
	if !known {
		k.add(path+".node", among(g.Node, sortedKeys(k.cloud.Nodes)), "there is no node %s", g.Node)
	}
	if _, known := k.cloud.Images[g.Image]; !known {
		k.add(path+".image", among(g.Image, sortedKeys(k.cloud.Images)), "there is no image %s", g.Image)
	}
	k.identity(path, name, g)
	k.address(path+".address4", g.Address4, node.Range4)
	k.address(path+".address6", g.Address6, node.Range6)
	if g.SSHPort != 0 {
		k.once(path+".ssh_port", "the port", fmt.Sprint(g.SSHPort))
		if g.SSHPort < FirstPort || g.SSHPort > LastPort {
			k.add(path+".ssh_port", "omit it, and corpus chooses one", "%d is not a port of %d to %d", g.SSHPort, FirstPort,
				LastPort)
		}
	}
	if g.ID != "" {
		k.once(path+".id", "the ID", g.ID)
		if _, deleted := k.cloud.Deleted[g.DiskOf()]; deleted {
			k.add(path+".id", "omit it, and corpus chooses one", "the guest with this ID was deleted")
		}
	}
	k.disks(path, g)
	k.mounts(path, g)
	names := k.cloud.AllNames(name)
	if k.cloud.Domain != "" {
		names = append(names, name+".guests."+k.cloud.Domain) // its own address in the DNS
	}
	for _, one := range names {
		if slices.Contains(g.Names, one) {
			k.once(path+".names", "the name", one)
		} else {
			k.once(path, "the name", one)
		}
	}
	if host := k.cloud.Hostname(name); known && len(host) > longestLabel {
		k.add(path, "give it a shorter name", "its hostname %s has more than %d characters", host, longestLabel)
	}
}

// reservedNames are names that hosts and networks use for themselves.
const reservedNames = "localhost localdomain local ip6localhost ip6loopback broadcasthost host root gateway metadata " +
	"guests wpad isatap invalid test example onion"

// identity reports names of guests that other hosts have, and guests whose hostnames would be those of nodes.
func (k *checking) identity(path, name string, g Guest) {
	k.once(path, "the guest", name)
	if _, is := k.cloud.Nodes[name]; is || slices.Contains(strings.Fields(reservedNames), name) {
		k.add(path, "give it another name", "a guest cannot have the name %s: it is that of a node, or reserved", name)
	}
	k.service(path, g.Project)
}

// service reports guests of the project of nodes.
func (k *checking) service(path, project string) {
	if project == Project {
		k.add(path+".project", "hosts of the project "+Project+" are nodes: choose another project",
			"a guest cannot be of the project %s", Project)
	}
}

// disks reports disks of a guest that are given twice, are deleted, or are on the node that it leaves.
func (k *checking) disks(path string, g Guest) {
	if g.Disk != "" {
		k.once(path+".disk", "the ID", g.Disk)
	}
	for _, one := range g.Old {
		_, disk, _ := strings.Cut(one, ".")
		if disk != g.ID {
			k.once(path+".old", "the ID", disk)
		}
		if _, deleted := k.cloud.Deleted[disk]; deleted || disk == g.DiskOf() {
			k.add(path+".old", "remove it there", "the disk %s is deleted, or is the present one", disk)
		}
	}
	if g.From == g.Node && g.From != "" {
		k.add(path+".from", "remove it", "the guest is on this node")
	}
	if g.Copy != "" && g.Disk == "" {
		k.add(path+".copy", "remove it", "the guest has its first disk")
	}
}

// among returns a hint for a name that is not one of all.
func among(name string, all []string) string {
	if hint := diag.DidYouMean(name, all); hint != "" {
		return hint
	}
	if len(all) == 0 {
		return "there is none yet: add one first"
	}
	return "there are " + joined(all)
}

// address reports an address that is not in the network of the guest's node, or is reserved there.
func (k *checking) address(path, text, network string) {
	if text == "" {
		return
	}
	k.once(path, "the address", text)
	addr, err := netip.ParseAddr(text)
	prefix, errPrefix := netip.ParsePrefix(network)
	if err != nil || errPrefix != nil || !prefix.Contains(addr) || reserved(prefix, addr) {
		k.add(path, "omit it, and corpus chooses one", "%s is not the address of a guest in the node's network %q", text,
			network)
	}
}

// Bridge returns the node's own address in a network of guests, which is the first address.
func Bridge(prefix netip.Prefix) netip.Addr { return prefix.Addr().Next() }

// reserved reports whether guests may not have an address: it is the address of the network or of the node, or the last
// one.
func reserved(prefix netip.Prefix, addr netip.Addr) bool {
	return addr == prefix.Addr() || addr == Bridge(prefix) || !prefix.Contains(addr.Next())
}
