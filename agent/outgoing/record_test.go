package outgoing_test

import (
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/outgoing"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact"
)

// TestFailureWhileWaitingIsOfTheDeployedRelease checks a host on which 1.0 fails while it waits for 1.1 in a rollout:
// its record does not have 1.1, since views would count a failure of a release that never ran.
func TestFailureWhileWaitingIsOfTheDeployedRelease(t *testing.T) {
	of := func(version string) *ledger.Pair {
		return &ledger.Pair{Service: artifact.Release{Project: "myapp", Version: version,
			Digest: artifact.NewDigest([32]byte{version[2]})}}
	}
	run := report.Report{Service: "myapp", Host: "h", Exit: 3, Outcome: report.Failed, Left: of("1.0"), To: of("1.0"),
		Withheld: of("1.1")}
	if r := outgoing.Record(&run, false); r.Wanted != nil || r.Service == nil || r.Service.Version != "1.0" {
		t.Errorf("a failed run of 1.0 is recorded with the wanted release %+v and the service %+v", r.Wanted, r.Service)
	}
	run.Exit, run.Outcome = 0, report.Converged
	if r := outgoing.Record(&run, false); r.Wanted == nil || r.Wanted.Version != "1.1" {
		t.Errorf("a host that waits for 1.1 is recorded with the wanted release %+v", r.Wanted)
	}
}
