package outgoing_test

import (
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/outgoing"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact"
)

// TestFailureWhileWaitingIsOfTheDeployedRelease checks that a host that waits for 1.1 in a rollout, and on which 1.0
// fails, does not report 1.1: views would count a failure of a release that never ran.
func TestFailureWhileWaitingIsOfTheDeployedRelease(t *testing.T) {
	of := func(version string) *ledger.Pair {
		return &ledger.Pair{Service: artifact.Release{Project: "myapp", Version: version,
			Digest: artifact.NewDigest([32]byte{version[2]})}}
	}
	run := report.Report{Service: "myapp", Host: "h", Exit: 3, Outcome: report.Failed, Left: of("1.0"), To: of("1.0"),
		Withheld: of("1.1")}
	if r := outgoing.Record(&run, false); r.Wanted != nil || r.Service == nil || r.Service.Version != "1.0" {
		t.Errorf("a failed run of 1.0 is recorded with %+v, which it wants instead of %+v", r.Wanted, r.Service)
	}
	run.Exit, run.Outcome = 0, report.Converged
	if r := outgoing.Record(&run, false); r.Wanted == nil || r.Wanted.Version != "1.1" {
		t.Errorf("a host that waits for 1.1 is recorded with %+v", r.Wanted)
	}
}
