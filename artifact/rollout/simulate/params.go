package simulate

import (
	"fmt"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/rollout"
)

// Params is what is simulated.
type Params struct {
	Plan    rollout.Plan
	Hosts   int
	Seed    uint64
	Urgent  bool
	Fails   Failures
	Faults  Faults
	Tick    time.Duration // how often a host looks for something to do
	Deploy  time.Duration // how long a deploy takes at most; at least a tenth of it
	Regions int
	Cluster int           // hosts of a cluster
	Most    time.Duration // virtual time after which the simulation ends
}

// Failures are the hosts on which a release does not work.
type Failures struct {
	Share   float64         // of all hosts, chosen at random
	Region  string          // all hosts of a region
	Cluster string          // all hosts of a cluster
	After   time.Duration   // hosts that take it later than this after the start
	Late    time.Duration   // it is healthy at first, and fails so much later
	Names   map[string]bool // these
	Wave    map[int]bool    // hosts of these waves
	_       [0]func()       // not comparable, since maps are not
}

// Faults are what goes wrong besides the release. The probabilities are per request.
type Faults struct {
	Refused  float64       // answers 503
	Lost     float64       // writes that the store has and whose answer is lost
	Stale    time.Duration // how old a listing may be
	Outages  int           // times in which the store is out of reach
	Outage   time.Duration // how long each is
	Dead     float64       // share of hosts that die while they deploy
	LeaseTTL time.Duration // after which the place of a host that died is free
}

// Defaults fills in what is zero.
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

// Region returns the name of the nth region, from 0 on. The first ones have the names that the plan orders.
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
