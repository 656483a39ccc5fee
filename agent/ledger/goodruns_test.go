package ledger_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/artifact"
)

// TestHistoryKeepsWhatIsOnTheDisk checks that a host that keeps many releases can go back to each of them, and that the
// history of one that keeps few stays small.
func TestHistoryKeepsWhatIsOnTheDisk(t *testing.T) {
	l := &ledger.Ledger{}
	for n := range 120 {
		l.Deployed(ledger.Pair{Service: artifact.Release{
			Project: "myapp", Version: fmt.Sprint(n), Digest: artifact.PartOfDigest(fmt.Sprintf("%012d", n))}}, time.Now())
		l.TrimHistory(func(p ledger.Pair) bool { return p.Service.Version != "3" })
	}
	if len(l.History) != 119 || l.History[3].Service.Version != "4" {
		t.Errorf("%d pairs, the fourth %s", len(l.History), l.History[3].Service.Version)
	}
	l.TrimHistory(func(ledger.Pair) bool { return false })
	if len(l.History) != 50 || l.History[0].Service.Version != "70" {
		t.Errorf("%d pairs, the first %s", len(l.History), l.History[0].Service.Version)
	}
}
