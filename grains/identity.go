package grains

import (
	"regexp"
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// Identity is the identity of a host. Service and Instance are always known; Region and Node are empty only if a
// convention leaves them out, and Decide sets them.
type Identity struct {
	Service  string `json:"service"`  // the service that the host runs, such as myapp
	Instance string `json:"instance"` // its instance, such as testing; also the service's channel
	Region   string `json:"region"`   // its region, such as useast1
	Node     string `json:"node"`     // its node, such as 898900
	Domain   string `json:"domain"`   // the hostname after its first dot; may be empty
}

// Group returns the name of all hosts of one instance of a service, such as myapp-testing.
func (i Identity) Group() string { return i.Service + "-" + i.Instance }

// Cluster returns the name of the hosts of a group in one region, such as myapp-testing-useast1. It is also the name of
// their auto scaling group.
func (i Identity) Cluster() string { return join(i.Group(), i.Region) }

// String returns the short hostname in the default convention, such as myapp-testing-useast1-898900.
func (i Identity) String() string { return join(i.Cluster(), i.Node) }

// IsZero reports whether the identity is unknown.
func (i Identity) IsZero() bool { return i == Identity{} }

// Grains returns the grains that top files match on.
func (i Identity) Grains() *value.Map {
	return value.NewMap(
		"service_name", i.Service,
		"service_instance", i.Instance,
		"region", i.Region,
		"service_node", i.Node,
		"cluster_name", i.Cluster(),
		"service_group", i.Group(),
	)
}

func join(name, more string) string {
	if more == "" {
		return name
	}
	return name + "-" + more
}

// maxName is the maximum length of a part of an identity, which is that of a DNS label.
const maxName = 63

// identityName matches valid parts of an identity from all sources. Parts are used in paths and in keys of a store, so
// there is no slash and no leading dot or dash.
var identityName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`) })

func isName(s string) bool { return len(s) <= maxName && identityName().MatchString(s) }

// splitHost splits a hostname at its first dot. A dot at the end, for the DNS root, is ignored.
func splitHost(hostname string) (short, domain string) {
	short, domain, _ = strings.Cut(strings.TrimSuffix(hostname, "."), ".")
	return short, domain
}
