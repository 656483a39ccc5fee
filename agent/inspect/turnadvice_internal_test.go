package inspect

import (
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/artifact"
)

// TestWithdrawnReleaseIsNotTakenAhead checks that why proposes nothing for the turn of a release that is withdrawn.
func TestWithdrawnReleaseIsNotTakenAhead(t *testing.T) {
	turn := ledger.Turn{Reason: ledger.ReasonWithdrawn}
	if next := (Why{Status: Status{Bootstrapped: true, Turns: []ledger.Turn{turn}}}).advice(nil); len(next) > 0 {
		t.Errorf("why proposes %q", next)
	}
}

// TestStoppedRolloutIsNotTakenAhead checks that why proposes to take a release ahead only in a rollout that goes on.
func TestStoppedRolloutIsNotTakenAhead(t *testing.T) {
	for reason, ahead := range map[string]bool{"waits": true, "too few": true, "closed": true, "places": true,
		"halted": false, "stops": false, "paused": false, "no evidence": false} {
		turn := ledger.Turn{Channel: artifact.Ref{Project: "web", Channel: "production"}, Reason: reason,
			Release: artifact.Release{Project: "web", Version: "2", Digest: "sha256:22"}}
		next := strings.Join(Why{Status: Status{Turns: []ledger.Turn{turn}}}.advice(nil), "\n")
		if strings.Contains(next, "deploy --ahead") != ahead ||
			strings.Contains(next, "corpus rollout status web production") == ahead {
			t.Errorf("%s: %s", reason, next)
		}
	}
}
