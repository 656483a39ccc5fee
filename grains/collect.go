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

// Source says where facts are found. The zero Source is the machine the program runs on.
type Source struct {
	// Root is the tree that a run changes, "" for the machine itself. Where it has an os-release
	// of its own, what belongs to the distribution is read there: formulas choose package names
	// and paths by it. Everything else is always the machine's.
	Root string
	// Machine is a tree to read in place of the machine's own /proc, /sys, /run and /etc.
	Machine string
	// ID is the id grain; "" means the host's full name.
	ID string
	// Getenv looks up the environment; nil means os.Getenv.
	Getenv func(string) string
	// Interfaces lists the network interfaces; nil asks the kernel.
	Interfaces func() ([]Interface, error)
	// Resolver asks name servers; nil means net.DefaultResolver.
	Resolver Resolver
	// Patience bounds every question to a name server; 0 means half a second.
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

// Map returns the facts that are known at once. The caller may change it.
func (f *Facts) Map() *value.Map { return value.Copy(f.known).(*value.Map) }

// Later names the facts that need a name server, which Map leaves out.
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
	machine tree // the running machine
	system  tree // the tree whose distribution counts
	facts   *value.Map
	trouble *walk.Trouble
}

// Collect gathers the core grains. What does not exist or may not be read is left out. An error of the machine, such as
// EIO or EMFILE, is returned: the facts would be wrong.
//
// The one thing it may wait for is the domain of a host whose hostname has none: /etc/hosts is
// looked at first, and only a host that is not in there asks its name server, for Patience at most.
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
	if err := c.trouble.Since(0); err != nil {
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
	trouble := &walk.Trouble{}
	machine := tree{s.Machine, trouble}
	c := &collector{Source: s, machine: machine, system: machine, trouble: trouble, facts: value.NewMap()}
	if root := (tree{s.Root, trouble}); root.path("") != "/" && root.osRelease() != nil {
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
	// A number that MySQL takes for its server id: the hash of the id modulo 2 to the 31st.
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
