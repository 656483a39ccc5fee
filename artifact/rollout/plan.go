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
	"strconv"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Plan describes the order in which the hosts of a channel take a release. It is signed with the targets key.
type Plan struct {
	Waves   []Wave   `json:"waves"`
	Halt    Halt     `json:"halt"`
	Healthy Share    `json:"healthy"` // share of a wave's hosts that must be healthy before the next wave begins
	AtOnce  Share    `json:"at_once"` // share of a cluster's hosts that may deploy at the same time
	Windows []Window `json:"windows,omitempty"`
	First   []string `json:"first,omitempty"`   // patterns of hosts that are always in the first wave
	Last    []string `json:"last,omitempty"`    // patterns of hosts that are always in the last wave
	Regions []string `json:"regions,omitempty"` // taken in this order, each as a whole; the others follow
	Agent   string   `json:"agent"`             // version of the agent that it requires
}

// Wave is a share of the hosts. The shares are cumulative: that of the last wave is All.
type Wave struct {
	Name  string   `json:"name,omitempty"`
	Share Share    `json:"share"`
	Soak  Duration `json:"soak"` // time between enough healthy hosts and the next wave
}

// Halt has the limits at which a rollout stops by itself: a number of failed hosts or their share of the finished
// hosts, whichever is reached first. 0 is not a limit.
type Halt struct {
	Hosts int   `json:"hosts,omitempty"`
	Share Share `json:"share,omitempty"`
}

// ShareCountsFrom is the number of finished hosts from which a share of failed hosts stops a rollout: among a few
// hosts, any failure is a large share.
const ShareCountsFrom = 20

// Default returns the plan of a channel without numbers of its own. It suits ten hosts as well as ten thousand, since
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

// Limits of a plan. They prevent that a mistake in a plan stops a fleet for years, or that a host needs long to read
// it.
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

// Sound is like Check, without the windows: if a host lacks the time zone of a window, the window is closed.
func (p Plan) Sound() error {
	errs := append(p.checkWaves(), p.checkShares()...)
	return errors.Join(append(errs, checkNumber(len(p.Windows)), p.order().check())...)
}

func (p Plan) checkWaves() (errs []error) {
	if len(p.Waves) == 0 || len(p.Waves) > maxWaves {
		return []error{fmt.Errorf("a plan has 1 to %d waves, not %d", maxWaves, len(p.Waves))}
	}
	before := Share(0)
	for i, w := range p.Waves {
		if w.Share <= before || w.Share > All {
			errs = append(errs, diag.Plan.Hint(fmt.Errorf("wave %s has %s of the hosts, and the one before it %s",
				p.WaveName(i), w.Share, before), "shares count all hosts up to that wave, such as 1%%:1h,10%%:4h,100%%"))
		}
		if w.Soak < 0 || time.Duration(w.Soak) > maxSoak {
			errs = append(errs, fmt.Errorf("wave %s waits %s, and may wait %s at most", p.WaveName(i), w.Soak,
				Duration(maxSoak)))
		}
		before = w.Share
	}
	if before != All {
		errs = append(errs, diag.Plan.Hint(fmt.Errorf("the last wave has %s of the hosts", before), "let it have 100%%"))
	}
	return errs
}

func (p Plan) checkShares() (errs []error) {
	if err := p.limits().check(); err != nil {
		errs = append(errs, err)
	}
	if p.AtOnce <= 0 || p.AtOnce > All {
		errs = append(errs, diag.Plan.Hint(fmt.Errorf("%s of a cluster's hosts cannot deploy at the same time", p.AtOnce),
			"write --at-once 25%%"))
	}
	return errs
}

func (p Plan) limits() *Limits { return &Limits{Halt: p.Halt, Healthy: p.Healthy} }

// WaveName returns the name of a wave, or its number from 1 on if it has none.
func (p Plan) WaveName(i int) string {
	if i < len(p.Waves) && p.Waves[i].Name != "" {
		return p.Waves[i].Name
	}
	return strconv.Itoa(i + 1)
}
