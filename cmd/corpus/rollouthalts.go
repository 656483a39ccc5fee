package main

import (
	"context"
	"fmt"

	hosts "github.com/corpus-agent/corpus-agent/agent/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// halts returns the first halts of a list with their grounds.
func (u *activeRollout) halts(ctx context.Context, s store.Store, all []hosts.Entry) (halts []haltStatus) {
	for _, halt := range all[:min(len(all), mostHalts)] {
		h := haltStatus{Host: halt.Host, At: halt.At}
		if g, err := u.rollout.Grounds(ctx, s, halt); err != nil {
			h.Unread = err.Error()
		} else {
			h.Grounds = &g
		}
		halts = append(halts, h)
	}
	return halts
}

// standing returns the first halts that stand now, and says of each whether the results of the hosts, which they
// signed, show that the limit is reached.
func (u *activeRollout) standing(ctx context.Context, s store.Store) []haltStatus {
	failed, finished := 0, 0
	for _, said := range u.seen.Results {
		switch {
		case said.Outcome == hosts.Healthy:
			finished++
		case said.At.After(u.rollout.Start.Resumed):
			failed, finished = failed+1, finished+1
		}
	}
	halts := u.halts(ctx, s, u.seen.Halts)
	if u.plan.Halt.Reached(failed, finished) {
		return halts
	}
	for i := range halts {
		halts[i].Unfounded = fmt.Sprintf("the store shows that it failed on %d of %s, and the limit is %s. Unless hosts "+
			"have recovered, the plan was changed or the store has lost results, look at this host, whose key may be stolen: "+
			"`corpus host show %s`",
			failed, diag.Count(finished, "finished host"), u.plan.Halt, halts[i].Host)
	}
	return halts
}
