package fleet_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
)

// TestRenamedAndAheadHosts checks that a host whose key was registered later for another name counts as renamed and not
// as one without a record, and that the hint of a host with a clock that is a day ahead is about that clock.
func TestRenamedAndAheadHosts(t *testing.T) {
	s := mem.New()
	k, _, err := hostkey.Open(filepath.Join(t.TempDir(), "host.key"))
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"old", "new"} {
		if err := k.Register(t.Context(), s, hostkey.Registration{Host: host}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Millisecond)
	}
	w := hostrecord.Writer{Store: s, Key: k, File: filepath.Join(t.TempDir(), "record.json")}
	r := hostrecord.Record{Project: "myapp", Host: "new", Sequence: 1, Outcome: "converged",
		Run: time.Now().Add(24 * time.Hour).UTC().Format(hostrecord.RunTime)}
	if err := w.Write(t.Context(), r, hostrecord.Detail{}); err != nil {
		t.Fatal(err)
	}
	look := func(now time.Time, want ...string) {
		t.Helper()
		v, err := fleet.Look(t.Context(), fleet.Query{Store: s, Now: now, SilentAfter: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, a := range v.Attention {
			got = append(got, a.What+" "+strings.Join(a.Hosts, " ")+": "+a.Hint)
		}
		if len(got) != len(want) {
			t.Fatalf("what needs a person is\n%s", strings.Join(got, "\n"))
		}
		for i := range want {
			if !strings.HasPrefix(got[i], want[i]) {
				t.Errorf("got %q, want %q", got[i], want[i])
			}
		}
	}
	const (
		ahead   = "run in the future new: look at the clock of the host (timedatectl), which was 24h0m0s ahead"
		renamed = "renamed old: new has its key: if the host has that name for good: corpus host forget old"
	)
	look(time.Now(), ahead, renamed)
	const silent = "silent new: its record has a time in the future: look at the clock"
	look(time.Now().Add(-48*time.Hour), ahead, silent, renamed)
}
