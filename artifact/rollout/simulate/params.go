package simulate

import (
	"fmt"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/rollout"
)

// Params are the parameters of a simulation.
type Params struct {
	Plan    rollout.Plan
	Hosts   int
	Seed    uint64
	Urgent  bool
	Fails   Failures
	Faults  Faults
	Tick    time.Duration // interval at which a host runs
	Deploy  time.Duration // maximum duration of a deploy; the minimum is a tenth of it
	Regions int
	Cluster int           // number of hosts in a cluster
	Most    time.Duration // virtual time after which the simulation ends
	Prefix  string        // how names of hosts begin, before their region; app-production if empty
}

// Failures selects the hosts on which a release does not work.
type Failures struct {
	Share   float64         // of all hosts, chosen at random
	Region  string          // all hosts of a region
	Cluster string          // all hosts of a cluster
	After   time.Duration   // hosts that take it later than this after the start
	Late    time.Duration   // all hosts are healthy at first, and fail so much later
	Names   map[string]bool // hosts with these names
	Wave    map[int]bool    // hosts of these waves
	_       [0]func()       // not comparable, since maps are not
}

// Faults are faults other than those of the release. The probabilities are per request.
type Faults struct {
	Refused  float64       // responses with status 503
	Lost     float64       // writes that succeed, with a lost response
	Stale    time.Duration // maximum age of a listing
	Outages  int           // number of outages of the store
	Outage   time.Duration // duration of each outage
	Dead     float64       // share of hosts that die while they deploy
	LeaseTTL time.Duration // time after which the lease of a dead host expires
}

// Defaults returns the parameters with zero values replaced by the defaults.
func (p Params) Defaults() Params {
	set := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	set(&p.Tick, 5*time.Minute)
	set(&p.Deploy, 3*time.Minute)
	set(&p.Most, 14*24*time.Hour)
	set(&p.Faults.LeaseTTL, 30*time.Minute)
	p.Regions, p.Cluster = max(p.Regions, 1), max(p.Cluster, min(20, max(p.Hosts, 1)))
	if len(p.Plan.Waves) == 0 {
		p.Plan = rollout.Default()
	}
	return p
}

// Region returns the name of the nth region, counted from 0. The first ones have the names in the plan's list of
// regions.
func (p Params) Region(n int) string {
	if n < len(p.Plan.Regions) {
		return p.Plan.Regions[n]
	}
	return fmt.Sprintf("region%d", n+1)
}

// cluster returns the name of the cluster of the nth host.
func (p Params) cluster(n int) string {
	return fmt.Sprintf("%s-%d", p.Region(n/p.Cluster%p.Regions), n/p.Cluster)
}

// Places returns the names of the regions and clusters that have hosts.
func (p Params) Places() (regions, clusters []string) {
	p = p.Defaults()
	for i := 0; i < p.Hosts; i += p.Cluster {
		if n := i / p.Cluster; n < p.Regions {
			regions = append(regions, p.Region(n))
		}
		clusters = append(clusters, p.cluster(i))
	}
	return regions, clusters
}
