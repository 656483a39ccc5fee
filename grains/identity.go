package grains

import (
	"regexp"
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// Identity is who a host is. Service and Instance are always known; Region and Node are empty only
// where a convention leaves them out, and Decide fills them in.
type Identity struct {
	Service  string `json:"service"`  // what runs here, such as myapp
	Instance string `json:"instance"` // for whom, such as testing; also the service's channel
	Region   string `json:"region"`   // where, such as useast1
	Node     string `json:"node"`     // which one, such as 898900
	Domain   string `json:"domain"`   // what follows the first dot of the hostname; may be empty
}

// Group names all hosts of one instance of a service, such as myapp-testing.
func (i Identity) Group() string { return i.Service + "-" + i.Instance }

// Cluster names the hosts of a group in one region, such as myapp-testing-useast1. It is also the
// name of their auto scaling group.
func (i Identity) Cluster() string { return join(i.Group(), i.Region) }

// String is the short hostname in the default convention, such as myapp-testing-useast1-898900.
func (i Identity) String() string { return join(i.Cluster(), i.Node) }

// IsZero reports whether the identity is not known.
func (i Identity) IsZero() bool { return i == Identity{} }

// Grains are the grains that top files match on.
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

// maxName is the longest name a part of an identity can have, that of a DNS label.
const maxName = 63

// identityName is what a part of an identity may look like however it was given. Parts end up in
// paths and in keys of a store, so there is no slash and no leading dot or dash.
var identityName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`) })

func isName(s string) bool { return len(s) <= maxName && identityName().MatchString(s) }

// splitHost cuts a hostname at its first dot. The root's dot at the end does not count.
func splitHost(hostname string) (short, domain string) {
	short, domain, _ = strings.Cut(strings.TrimSuffix(hostname, "."), ".")
	return short, domain
}
