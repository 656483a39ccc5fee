package main

import (
	"context"
	"errors"

	hosts "github.com/corpus-agent/corpus-agent/agent/rollout"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// shownRolloutOf is like loadRollout, for a view: of a rollout with more objects than hosts read, it has what the first
// ones show, and the reason in flood.
func shownRolloutOf(ctx context.Context, client *trust.Client, s store.Store, ref artifact.Ref) (*activeRollout,
	error) {
	u, err := loadRollout(ctx, client, s, ref)
	var flood *hosts.Flooded
	if errors.As(err, &flood) {
		u.flood = flood
		u.seen, err = u.rollout.ReadFlooded(ctx, s, u.now)
	}
	return u, err
}

// addFlood adds the reason why hosts do not read the results to a status.
func (u *activeRollout) addFlood(r *rolloutStatus) {
	if u.flood != nil {
		r.Flooded = u.flood.Error()
	}
}
