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
	book.Postpone(pair, "the disk is full", "1", now, false)
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

// A release in quarantine is also released by another version that has its bytes.
func TestUnquarantineByAVersionWithTheSameBytes(t *testing.T) {
	failed := artifact.Release{Project: "web", Version: "6.1", Digest: "sha256:22"}
	again := artifact.Release{Project: "web", Version: "6.1.1", Digest: "sha256:22"}
	other := artifact.Release{Project: "web", Version: "6.1.1", Digest: "sha256:33"}
	book := func() *ledger.Ledger {
		b := &ledger.Ledger{}
		b.Quarantine(ledger.Bad{Pair: ledger.Pair{Service: failed}, Release: &failed})
		return b
	}
	if n := len(book().Unquarantine("6.1.1", other)); n != 0 {
		t.Errorf("another release of that version released %d", n)
	}
	if n := len(book().Unquarantine("6.1.1", again)); n != 1 {
		t.Errorf("a version with the same bytes released %d", n)
	}
	waits := book()
	waits.Enter(artifact.Ref{Project: "web", Channel: "production"}, "1", again, time.Now())
	if n := len(waits.Unquarantine("6.1.1")); n != 1 {
		t.Errorf("the version that a rollout brings released %d", n)
	}
	b := book().Bad[0]
	for _, p := range []*ledger.Pair{nil, {Service: failed}} {
		if got := b.Under(p); got != "" {
			t.Errorf("the release is also named %q by %v", got, p)
		}
	}
	if got := b.Under(&ledger.Pair{Service: again}); got != "6.1.1" {
		t.Errorf("the release is also named %q", got)
	}
}
