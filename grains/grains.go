// Package grains determines the identity of a host and facts about it.
//
// Both are merged into one mapping that top files match on and templates read. The identity is the service that the
// host runs, its instance (testing, production), its region and its node. It is read from the hostname, since logs,
// monitoring and people already use that name, and since reading it needs neither the network nor another service. A
// Convention defines how hostnames are built; Parse parses one; Decide determines the identity of a host whose name
// does not follow the convention (yet). The package never guesses from a similar hostname: a host with a wrong identity
// would deploy the secrets of another.
//
// The facts are distribution, kernel, addresses, memory and so on. Collect gathers them under the names and with the
// values of Salt's core grains on Linux, because existing states compare with them. It reads files and asks the kernel,
// and starts no process, since every run calls it; it takes about a millisecond. The few facts that need a name server
// are computed only when they are read.
//
// If two layers have the same name, the later one wins, in the order of Layers: core facts, the operator's static file,
// the output of custom programs, the identity. The identity comes last so that no file can change it.
package grains

import "github.com/corpus-agent/corpus-agent/state/value"

// Layers are the sources of grains in order of increasing precedence. A nil layer is empty.
type Layers struct {
	Core     *value.Map // from Collect
	Static   *value.Map // from the operator's file
	Custom   *value.Map // from executables and files in grains directories
	Identity Identity
}

// Merge returns the mapping for a run. A grain of a later layer replaces the whole earlier one, as in Salt: mappings
// inside grains are not merged.
func (l Layers) Merge() *value.Map {
	all := l.Core.Clone()
	all.Update(l.Static)
	all.Update(l.Custom)
	if !l.Identity.IsZero() {
		all.Update(l.Identity.Grains())
	}
	return all
}
