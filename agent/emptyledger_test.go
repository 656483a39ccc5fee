package agent_test

import (
	"os"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
)

// TestLedgerWithoutContentIsADamagedOne checks a ledger that is JSON without content: the next run restores it from its
// copy, or from links and reports, and a host whose identity was given on the command line keeps it.
func TestLedgerWithoutContentIsADamagedOne(t *testing.T) {
	for _, content := range []string{"{}", "null", " {}\n", `{"version": 0}`} {
		for _, copied := range []bool{true, false} {
			l := givenIdentity(t)
			must(t, os.WriteFile(l.Layout.Ledger(), []byte(content), 0o600))
			if !copied {
				must(t, os.WriteFile(l.Layout.LedgerCopy(), []byte(content), 0o600))
			}
			if s := mustStatus(t, l); s.Deployed == nil || s.Deployed.Service.Version != "1" {
				t.Errorf("%s: status has no deployed pair", content)
			}
			r, err := l.Deploy(t.Context(), given("", ""), false)
			if exit.Code(err) != exit.OK || l.engine.last() != "b1+1" {
				t.Errorf("%s: exit code %d, %v, converged %q", content, exit.Code(err), err, l.engine.last())
			}
			noted(t, r, "the ledger could not be read")
		}
	}
}

// TestRequestWithoutContentReleasesNoHost checks that the agent sets an empty request aside, as it does with damaged
// ones.
func TestRequestWithoutContentReleasesNoHost(t *testing.T) {
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	must(t, l.Hold("load test"))
	must(t, os.WriteFile(l.Layout.HoldRequest(), []byte("{}"), 0o600))
	noted(t, l.expect(exit.OK), "hold.json could not be read")
	if mustStatus(t, l).Hold == nil {
		t.Error("the host is not held any more")
	}
}
