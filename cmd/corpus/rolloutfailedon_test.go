package main

import (
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	"github.com/corpus-agent/corpus-agent/artifact/rollout"
)

// A host on which the release failed and that may not write its result looks like one that waits for its turn.
func TestFailedHostsWithoutResultsAreFound(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	u, h := waitingRollout(now, now.Add(-time.Hour))
	release := h.Service
	h.Host, h.Run = "a", now.Add(-50*time.Minute).Format("20060102T150405.000000")
	h.Service, h.Outcome = &hostrecord.Place{Channel: "production", Version: "1", Digest: "00000000"}, "no-change"
	for _, c := range []struct {
		what    string
		state   fleet.State
		wanted  *hostrecord.Place
		resumed bool
		found   string
	}{
		{"quarantined", fleet.Quarantined, release, false, "a"},
		{"rolled back", fleet.RolledBack, release, false, "a"},
		{"another release is quarantined", fleet.Quarantined, h.Service, false, ""},
		{"a failure that a resume forgave", fleet.Quarantined, release, true, ""},
		{"waits for its turn", fleet.Healthy, release, false, ""},
	} {
		h.State, h.Wanted, u.rollout.Start.Moves = c.state, c.wanted, nil
		if c.resumed {
			u.rollout.Start.Moves = []rollout.Move{{What: "resume", At: now.Add(-30 * time.Minute)}}
		}
		if got := strings.Join(u.withoutResult([]fleet.Host{h}), " "); got != c.found {
			t.Errorf("%s: found %q, want %q", c.what, got, c.found)
		}
	}
	h.State, h.Wanted, u.rollout.Start.Moves = fleet.RolledBack, release, nil
	h.OfBase, h.WantedBase = true, &hostrecord.Place{Channel: "production", Version: "1.1", Digest: "11111111"}
	if got := u.withoutResult([]fleet.Host{h}); len(got) > 0 {
		t.Errorf("a host on which base failed lacks a result: %q", got)
	}
	if got := u.problemOf(h); !strings.HasPrefix(got, "base 1.1 failed there, and not this release") {
		t.Errorf("a host on which base failed: %q", got)
	}
}
