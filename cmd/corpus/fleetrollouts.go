package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/corpus-agent/corpus-agent/agent/fleet"
	hosts "github.com/corpus-agent/corpus-agent/agent/rollout"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// stoppedRollouts are the rollouts that only a person ends. They are read of channels that have hosts behind what they
// name: elsewhere every host has it.
func stoppedRollouts(ctx context.Context, client *trust.Client, s store.Store,
	rows []fleet.Row) (found []fleet.Attention) {
	seen := map[artifact.Ref]bool{}
	for _, row := range rows {
		if row.Behind == 0 || seen[row.Ref] {
			continue
		}
		seen[row.Ref] = true
		u, err := loadRollout(ctx, client, s, row.Ref)
		switch {
		case errors.Is(err, errNoRollout), errors.Is(err, errNoPlan), errors.Is(err, trust.ErrNoChannel):
		case err != nil:
			found = append(found, fleet.Attention{What: fleet.Unseen, Project: row.Project, Channel: row.Channel,
				Hosts: []string{}, Why: fmt.Sprintf("%s: %v", row.Ref, err), Hint: diag.HintOf(err)})
		default:
			if a, stopped := u.stopped(); stopped {
				found = append(found, a)
			}
		}
	}
	return found
}

// stopped is what a person should know of a rollout that is halted or paused.
func (u *underway) stopped() (fleet.Attention, bool) {
	state, next := u.next(1, 0)
	what := map[string]string{"halted": fleet.Halted, "paused": fleet.Paused}[state]
	if what == "" {
		return fleet.Attention{}, false
	}
	a := fleet.Attention{What: what, Project: u.ref.Project, Channel: u.ref.Channel, Version: u.version, Hosts: []string{},
		Since: u.rollout.Start.At, Why: fmt.Sprintf("%s: %s", u.ref, next),
		Hint: fmt.Sprintf("corpus rollout status %s %s", u.ref.Project, u.ref.Channel)}
	for _, said := range u.seen.Results {
		if said.Outcome != hosts.Healthy {
			a.Hosts = append(a.Hosts, said.Host)
		}
	}
	return a, true
}
