package grains

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Source selects the sources of facts. The zero Source is the machine on which the program runs.
type Source struct {
	// Root is the tree that a run changes, "" for the machine itself. If it has its own os-release, the facts about the
	// distribution are read there: formulas choose package names and paths by them. All other facts are always those of
	// the machine.
	Root string
	// Machine is a tree to read in place of the machine's own /proc, /sys, /run and /etc.
	Machine string
	// ID is the id grain; "" means the host's full name.
	ID string
	// Getenv looks up the environment; nil means os.Getenv.
	Getenv func(string) string
	// Interfaces lists the network interfaces; nil reads them from the kernel.
	Interfaces func() ([]Interface, error)
	// Resolver queries name servers; nil means net.DefaultResolver.
	Resolver Resolver
	// Patience limits the time of each query to a name server; 0 means half a second.
	Patience time.Duration
}

// Resolver is the part of *net.Resolver that facts need.
type Resolver interface {
	LookupCNAME(ctx context.Context, host string) (string, error)
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Facts are the core grains of a host. Those that need a name server are computed when they are
// first read, so that a run that never reads them does not wait.
type Facts struct {
	known *value.Map
	later map[string]func(context.Context) any
}

// Map returns the facts that need no name server. The caller may change it.
func (f *Facts) Map() *value.Map { return value.Copy(f.known).(*value.Map) }

// Later returns the names of the facts that need a name server, which Map leaves out.
func (f *Facts) Later() []string { return slices.Sorted(maps.Keys(f.later)) }

// All returns every fact. The mapping computes those of Later when they are first read, which may be
// long after ctx has ended; a run that never reads them does not wait for a name server. The caller
// may change the mapping.
func (f *Facts) All(ctx context.Context) *value.Map {
	all := f.Map()
	ctx = context.WithoutCancel(ctx)
	for _, name := range f.Later() {
		all.SetLater(name, func() any { return f.later[name](ctx) })
	}
	return all
}

// collector gathers facts into one map.
type collector struct {
	Source
	machine       tree // the running machine
	system        tree // the tree of the distribution
	facts         *value.Map
	machineErrors *walk.MachineErrors
}

// Collect gathers the core grains. Facts whose sources do not exist or may not be read are left out. An error of the
// machine, such as EIO or EMFILE, is returned: the facts would be wrong.
//
// Collect may only have to wait for the domain of a host whose hostname has none: if the host is not in /etc/hosts, it
// queries the name server, for up to Patience.
func Collect(ctx context.Context, s Source) (*Facts, error) {
	c := s.collector()
	c.kernel()
	c.distribution()
	c.init()
	c.names(ctx)
	c.network()
	c.hardware()
	c.virtual()
	c.process()
	c.pretend()
	if err := c.machineErrors.Since(0); err != nil {
		return nil, fmt.Errorf("collecting grains: %w", err)
	}
	fqdn, _ := c.facts.Value("fqdn").(string)
	return &Facts{known: c.facts, later: map[string]func(context.Context) any{
		"fqdn_ip4": func(ctx context.Context) any { return c.addresses(ctx, "ip4", fqdn) },
		"fqdn_ip6": func(ctx context.Context) any { return c.addresses(ctx, "ip6", fqdn) },
	}}, nil
}

func (s Source) collector() *collector {
	if s.Getenv == nil {
		s.Getenv = os.Getenv
	}
	if s.Interfaces == nil {
		s.Interfaces = interfaces
	}
	if s.Resolver == nil {
		s.Resolver = net.DefaultResolver
	}
	s.Patience = cmp.Or(s.Patience, 500*time.Millisecond)
	machineErrors := &walk.MachineErrors{}
	machine := tree{s.Machine, machineErrors}
	c := &collector{Source: s, machine: machine, system: machine, machineErrors: machineErrors, facts: value.NewMap()}
	if root := (tree{s.Root, machineErrors}); root.path("") != "/" && root.osRelease() != nil {
		c.system = root
	}
	return c
}

func (c *collector) set(name string, v any) { c.facts.Set(name, v) }

// setText sets a fact, and leaves it out if the text is empty.
func (c *collector) setText(name, text string) {
	if text != "" {
		c.set(name, text)
	}
}

func (c *collector) text(name string) string {
	s, _ := c.facts.Value(name).(string)
	return s
}

// pretend sets the versions that formulas compare before they use newer features. The states language is that of
// Salt 3006, and the Python version is one that Salt ran on, since some formulas choose between
// names of Python packages by it.
func (c *collector) pretend() {
	c.set("saltversion", "3006.0")
	c.set("saltversioninfo", value.NewList(3006, 0))
	c.set("pythonversion", value.NewList(3, 11, 2, "final", 0))
	id := cmp.Or(c.ID, c.fullName())
	sum := sha256.Sum256([]byte(id))
	c.set("id", id)
	// MySQL uses this number as its server ID: the hash of the ID modulo 2 to the 31st.
	c.set("server_id", int(binary.BigEndian.Uint32(sum[28:])&0x7fffffff))
}

// fullName returns Salt's name for a host without a configured id: its first name that is not localhost.
func (c *collector) fullName() string {
	for _, name := range []string{c.text("fqdn"), c.text("localhost")} {
		if name != "" && !strings.HasPrefix(name, "localhost") {
			return name
		}
	}
	return "localhost"
}
