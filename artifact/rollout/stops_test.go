package rollout_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/corpus-agent/corpus-agent/artifact/rollout"
)

// TestStopsOfAChannelAreBounded checks that a start keeps the newest halts and aborts of earlier rollouts, with texts
// of bounded length, and that such a start is valid.
func TestStopsOfAChannelAreBounded(t *testing.T) {
	digest := func(n int) string { return fmt.Sprintf("sha256:%064d", n) }
	at := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	start := &rollout.Start{ID: "1", Release: digest(1), Roster: digest(9), At: at}
	for i := range 12 {
		halt := rollout.Stop{Release: start.Release, What: "halt", At: at.Add(time.Duration(i) * time.Hour), By: "a",
			Why: strings.Repeat("\u00e4", 1000)}
		start.Aborted, start.Moves = true, []rollout.Move{{What: "abort", At: halt.At, Who: "anna"}}
		start.Stops = start.StopsOf([]rollout.Stop{halt})
	}
	if err := start.Check(); err != nil {
		t.Fatal(err)
	}
	stops := start.Stopped()
	if n := len(stops); n != 8 || stops[n-1].What != "abort" || stops[n-1].By != "anna" || stops[n-2].What != "halt" {
		t.Fatalf("the start keeps %+v", stops)
	}
	if why := stops[6].Why; len(why) > 400 || !utf8.ValidString(why) || !strings.HasSuffix(why, "...") {
		t.Errorf("the grounds have %d bytes: %q", len(why), why)
	}
	const last = "an earlier rollout of this release: abort at 2026-05-04T23:00:00Z by anna"
	if text := start.String(); !strings.Contains(text, last) {
		t.Errorf("people who sign the start read %q", text)
	}
	start.Stops = append(start.Stops, rollout.Stop{Release: digest(1), Why: strings.Repeat("x", 401)})
	if err := start.Check(); err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("nine stops, of which one is too long: %v", err)
	}
}
