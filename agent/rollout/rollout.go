// Package rollout reads and writes the results of hosts in a rollout in the store, and decides what a host may do.
//
// All of a rollout is below one prefix (rollout.Prefix of artifact/rollout):
//
//	roster.json                          the hosts and their public keys when it started; its digest is signed
//	results/HOST/OUTCOME.RUN.SIG.json    the result of a host
//	halts/HOST/EPOCH.RUN.SIG.json        a host found the limit reached; its grounds are in the body
//	leases/CLUSTER/SLOT.json             a host of a cluster deploys
//	summary.json                         the names of results and halts, for stores that cannot be listed
//
// The result of a host is the name of an object, with the host's signature. So one listing has the results of all
// hosts, and each name is verified with the key that the roster has for the host. The time of a name is the time at
// which the store received it. Names are only created: a host never replaces the result of another one.
package rollout

import (
	"errors"

	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/artifact"
	plans "github.com/corpus-agent/corpus-agent/artifact/rollout"
)

// Rollout is one rollout of a channel: its signed plan and start, and the roster that the start names.
type Rollout struct {
	Ref    artifact.Ref
	Plan   plans.Plan
	Start  plans.Start
	Roster Roster
}

// New returns the Rollout of a plan, a start and a roster. If the number of waves in the plan has changed since the
// start, New divides the hosts of the roster again, with the same result for all readers.
func New(ref artifact.Ref, plan plans.Plan, start plans.Start, roster Roster) Rollout {
	if !Divided(plan, start) {
		start.Cuts, start.Hosts = plan.For(start).Cut(start.Release, roster.Places())
	}
	return Rollout{Ref: ref, Plan: plan, Start: start, Roster: roster}
}

// Divided reports whether a start has the waves of a plan. If not, they are derived from the roster.
func Divided(plan plans.Plan, start plans.Start) bool {
	return len(start.Cuts) == len(plan.Waves)-1 && len(start.Hosts) == len(plan.Waves)
}

// Wave returns the index of the wave of a host.
func (r Rollout) Wave(h plans.Host) int {
	return r.Plan.For(r.Start).Wave(r.Start.Release, h, r.Start.Cuts)
}

func (r Rollout) prefix() string { return plans.Prefix(r.Ref, r.Start.ID) }

// Who returns the member of the roster that has a key, so that a renamed host keeps its place. If there is none, it
// returns now, the host under its present name, and false.
func (r Rollout) Who(key hostkey.Public, now plans.Host) (who plans.Host, member bool) {
	for _, m := range r.Roster.Hosts {
		if m.Key == key {
			return m.host(), true
		}
	}
	return now, false
}

// ErrNoEvidence is the error of a store that does not show the results of hosts: it cannot be listed, and has no recent
// summary.
var ErrNoEvidence = errors.New("the store does not show the results of other hosts")
