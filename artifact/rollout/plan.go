// Package rollout decides when each host deploys a release.
//
// The plan of a channel divides its hosts into waves. When the channel moves to a release, a rollout starts: each
// host computes its position from its name and the release, reads the results of the hosts before it from the store,
// and calls Decide. There is no coordinator. All hosts run the same code on the same signed plan, so that rollouts
// proceed and stop without a server, and can be simulated.
//
// The package accesses neither a store nor the clock: callers pass verified data.
package rollout

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Plan is how a release reaches the hosts of a channel. It is signed with the targets key.
type Plan struct {
	Waves   []Wave   `json:"waves"`
	Halt    Halt     `json:"halt"`
	Healthy Share    `json:"healthy"` // of a wave's hosts, before the next wave begins
	AtOnce  Share    `json:"at_once"` // of a cluster's hosts that deploy at the same time
	Windows []Window `json:"windows,omitempty"`
	First   []string `json:"first,omitempty"`   // patterns of hosts that are always in the first wave
	Last    []string `json:"last,omitempty"`    // patterns of hosts that are always in the last wave
	Regions []string `json:"regions,omitempty"` // in this order, each as a whole; the others follow
	Agent   string   `json:"agent"`             // the version of the agent that it takes
}

// Wave is a share of the hosts. The shares are cumulative: that of the last wave is All.
type Wave struct {
	Name  string   `json:"name,omitempty"`
	Share Share    `json:"share"`
	Soak  Duration `json:"soak"` // between the time at which enough of its hosts are healthy, and the next wave
}

// Halt says when a rollout stops by itself: at a number of failed hosts or at their share of those that finished,
// whichever is reached first. 0 is not a limit.
type Halt struct {
	Hosts int   `json:"hosts,omitempty"`
	Share Share `json:"share,omitempty"`
}

// ShareCountsFrom is how many hosts have to be finished before a share of them stops a rollout: of a few hosts any
// failure is a large share.
const ShareCountsFrom = 20

// Default is the plan of a channel that names no numbers of its own. It suits ten hosts as well as ten thousand, since
// every wave has at least one host.
func Default() Plan {
	return Plan{
		Waves: []Wave{{Share: 1 * Percent, Soak: Duration(time.Hour)}, {Share: 10 * Percent, Soak: Duration(4 * time.Hour)},
			{Share: 50 * Percent, Soak: Duration(12 * time.Hour)}, {Share: All}},
		Halt:    Halt{Hosts: 2, Share: 5 * Percent},
		Healthy: 80 * Percent,
		AtOnce:  25 * Percent,
	}
}

// The limits of a plan, which keep a mistake in one from stopping a fleet for years, or a host from reading it for
// long.
const (
	maxWaves    = 20
	maxSoak     = 30 * 24 * time.Hour
	maxPatterns = 100
)

// Check returns every mistake in a plan.
func (p Plan) Check() error {
	errs := []error{p.Sound()}
	for _, w := range p.Windows {
		errs = append(errs, w.check())
	}
	return errors.Join(errs...)
}

// Sound is Check without the windows: a host may lack a time zone that they name, and then they are closed.
func (p Plan) Sound() error {
	errs := append(p.checkWaves(), p.checkShares()...)
	for _, n := range []int{len(p.First), len(p.Last), len(p.Regions), len(p.Windows)} {
		if n > maxPatterns {
			errs = append(errs, fmt.Errorf("a plan has at most %d patterns of hosts, regions and windows",
				maxPatterns))
		}
	}
	for _, pattern := range append(append([]string{}, p.First...), p.Last...) {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			errs = append(errs, diag.WithHint(fmt.Errorf("%q is not a pattern of host names", pattern),
				"write one as for files, such as myapp-production-*-1"))
		}
	}
	return errors.Join(errs...)
}

func (p Plan) checkWaves() (errs []error) {
	if len(p.Waves) == 0 || len(p.Waves) > maxWaves {
		return []error{fmt.Errorf("a plan has 1 to %d waves, not %d", maxWaves, len(p.Waves))}
	}
	before := Share(0)
	for i, w := range p.Waves {
		if w.Share <= before || w.Share > All {
			errs = append(errs, diag.WithHint(fmt.Errorf("wave %s has %s of the hosts, and the one before it %s", p.WaveName(i),
				w.Share, before),
				"shares count all hosts up to that wave, such as 1%%:1h,10%%:4h,100%%"))
		}
		if w.Soak < 0 || time.Duration(w.Soak) > maxSoak {
			errs = append(errs, fmt.Errorf("wave %s waits %s, and may wait %s at most", p.WaveName(i), w.Soak,
				Duration(maxSoak)))
		}
		before = w.Share
	}
	if before != All {
		errs = append(errs, diag.WithHint(fmt.Errorf("the last wave has %s of the hosts", before), "let it have 100%%"))
	}
	return errs
}

func (p Plan) checkShares() (errs []error) {
	if p.Halt.Hosts < 0 || p.Halt.Share < 0 || p.Halt.Share > All {
		errs = append(errs, diag.WithHint(errors.New("the limit of failed hosts is out of range"), "write --halt-at 2,5%%"))
	}
	if p.Healthy < 0 || p.Healthy > All {
		errs = append(errs, diag.WithHint(fmt.Errorf("%s of a wave's hosts cannot be healthy", p.Healthy),
			"write --healthy 80%%"))
	}
	if p.AtOnce <= 0 || p.AtOnce > All {
		errs = append(errs, diag.WithHint(fmt.Errorf("%s of a cluster's hosts cannot deploy at the same time", p.AtOnce),
			"write --at-once 25%%"))
	}
	return errs
}

// WaveName is what a wave is called: by its name, or by its number from 1 on.
func (p Plan) WaveName(i int) string {
	if i < len(p.Waves) && p.Waves[i].Name != "" {
		return p.Waves[i].Name
	}
	return strconv.Itoa(i + 1)
}
