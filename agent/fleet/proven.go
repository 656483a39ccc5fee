package fleet

import (
	"context"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// Proven reports whether a host that follows the channel of q has its release and is healthy with it, as its signed
// record shows or, without such a record of any host, its signed reports since q.Since.
func Proven(ctx context.Context, s store.Store, keys Keys, q Question) (bool, error) {
	ref, project := q.Channel, q.Channel.Project
	if project == artifact.Base {
		project = ""
	}
	l, err := live(ctx, s, keys, project, q.Since)
	if err != nil {
		return false, err
	}
	for _, r := range l.recorded {
		place := places(r.Record)[ref.Project]
		if place.Is(q.Digest) && place.Channel == ref.Channel && stateOf(r.Record) != Failed {
			return true, nil
		}
	}
	if len(l.recorded) > 0 {
		return false, nil
	}
	answer, err := Ask(ctx, s, keys, q)
	if err != nil {
		return false, err
	}
	for _, r := range answer.Results {
		if r.Healthy && r.Signed {
			return true, nil
		}
	}
	return false, nil
}
