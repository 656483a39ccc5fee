package agent

import (
	"context"

	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/state"
)

// learnSecrets makes the secrets of a pair's pillar known to the redactor. Hooks and engines that are programs come before
// or in place of what decrypts the pillar, and may print what they know of it. A pillar that does not compile stops
// the run where it is needed; what was decrypted of it until then is known.
func (r *run) learnSecrets(ctx context.Context, pair ledger.Pair) {
	if r.decrypted[pair.Key()] {
		return
	}
	if r.decrypted == nil {
		r.decrypted = map[string]bool{}
	}
	r.decrypted[pair.Key()] = true
	service, base := r.PairDirs(pair)
	request, _, err := r.Agent.EngineRequest(ctx, r.identity, service, base)
	if err != nil {
		return // the converge fails likewise, and says why
	}
	_, _ = state.SessionFor(request).Pillar(ctx) // as above
}
