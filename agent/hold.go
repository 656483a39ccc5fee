package agent

import (
	"github.com/corpus-agent/corpus-agent/agent/ledger"
)

// A hold is asked for by a file of its own, since a run that is under way has the ledger: whoever holds or
// releases the host writes the request, and whoever saves the ledger next carries it out and removes the
// request, under a lock that is held for no longer than that. Every reader of the ledger sees the request.

// heldMeanwhile reports whether the host was held since the run decided to deploy a pair.
func (r *run) heldMeanwhile(pair ledger.Pair) bool {
	if r.test || r.Requested(r.ledger) != nil || r.ledger.Hold == nil || r.ledger.Runs() == nil || r.ledger.Running != nil || r.ledger.Runs().Same(pair) {
		return false
	}
	r.record.Note("this host was held since this run began; %s waits", pair)
	return r.withhold(pair)
}
