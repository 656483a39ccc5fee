package ledger_test

import (
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/artifact"
)

// A release in quarantine is not retried, whichever failure quarantined it.
func TestAReleaseInQuarantineIsNotRetried(t *testing.T) {
	release := artifact.Release{Project: "web", Version: "2", Digest: "sha256:22"}
	pair, now := ledger.Pair{Service: release}, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	book := &ledger.Ledger{}
	book.Postpone(pair, "the disk is full", "1", now)
	book.Quarantine(ledger.Bad{Pair: pair, Release: &artifact.Release{Project: "base", Version: "2", Digest: "sha256:33"}})
	if book.Postponed == nil {
		t.Fatal("another release in quarantine ended the retry")
	}
	book.Quarantine(ledger.Bad{Pair: pair, Release: &release})
	if book.Postponed != nil {
		t.Errorf("the release is still postponed: %+v", book.Postponed)
	}
}

func TestRetryTimesAreInTheFuture(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := ledger.Postponed{Next: now}
	if got := p.When(now); got != "at the next run" {
		t.Errorf("a retry that is due happens %s", got)
	}
	if got := p.When(now.Add(-time.Minute)); got != "from "+now.Local().Format("2006-01-02 15:04:05 MST")+" on" {
		t.Errorf("a retry that waits happens %s", got)
	}
}
