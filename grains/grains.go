// Package grains answers the question every run starts with: who is this host?
//
// There are two answers, and both end up in one mapping that top files match on and templates
// read. The first is the host's identity: which service it runs, for which instance (testing,
// production), in which region, and as which node. It is read from the hostname, since a hostname
// is the one name that logs, monitoring and people already use, and since reading it takes no
// network and no service that could be down. A Convention says how hostnames are built; Parse
// reads one; Decide says what happens on a host that is not named by the convention (yet). A
// hostname that merely looks similar is never guessed at: a host that took itself for another
// would deploy the other's secrets.
//
// The second answer is what the host is made of: distribution, kernel, addresses, memory. Collect
// gathers these facts under the names and with the values that Salt's core grains have on Linux,
// because the states people already own compare against them. It reads files and asks the kernel,
// starts no process, and takes about a millisecond, since it is paid on every run. The few facts
// that need a name server are computed only when they are read.
//
// Where a name is claimed twice the later layer wins, in the order of Layers: core facts, then the
// operator's static file, then what custom programs print, then the identity. Identity comes last
// so that no stray file can make a host pass for another one.
package grains

import "github.com/corpus-agent/corpus-agent/state/value"

// Layers are the sources of grains, weakest first. A nil layer is empty.
type Layers struct {
	Core     *value.Map // from Collect
	Static   *value.Map // from the operator's file
	Custom   *value.Map // from executables and files in grains directories
	Identity Identity
}

// Merge returns the mapping that a run uses. A grain of a later layer replaces an earlier one
// whole, as in Salt: mappings inside grains are not merged.
func (l Layers) Merge() *value.Map {
	all := l.Core.Clone()
	all.Update(l.Static)
	all.Update(l.Custom)
	if !l.Identity.IsZero() {
		all.Update(l.Identity.Grains())
	}
	return all
}
