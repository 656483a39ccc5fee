package pages_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/agent/fleet/pages"
	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// inDir writes pages into a directory.
type inDir string

func (d inDir) Page(_ context.Context, name string, content []byte) error {
	file := filepath.Join(string(d), name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o644)
}

func digest(n byte) artifact.Digest { return artifact.NewDigest([32]byte{n}) }

func place(version string, n byte) *hostrecord.Place {
	return &hostrecord.Place{Channel: "production", Version: version, Digest: digest(n).Short()}
}

const runID = "20260501T110000.000000"

// attack is text that a page must show as text.
const attack = "<script>document.title='taken'</script><img src=x " +
	"onerror=\"document.title='taken'\">\x1b[31mred\x1b]0;taken\a"

// hostileReport has hostile text in each of its fields, and a line of 10 MB.
func hostileReport(host string) map[string]any {
	return map[string]any{
		"id": runID, "host": host, "sequence": 7, "command": attack, "started": "2026-05-01T11:00:00Z",
		"ended": "2026-05-01T11:00:09Z", "outcome": attack, "exit_code": 7, "agent": attack, "error": attack, "hint": attack,
		"states": map[string]int{"total": 4, "failed": 1, "changed": 1},
		"steps": []map[string]any{
			{"id": attack, "function": "file.managed", "name": attack, "sls": attack, "result": "failed", "comment": attack,
				"hint": attack, "warnings": []string{attack}, "duration_ns": 4_200_000,
				"changes": map[string]any{"diff": "--- \n+++ \n@@ -1,2 +1,2 @@\n [app]\n-workers = 2\n+workers = 8\n+" + attack,
					attack: attack}},
			{"id": "long", "function": "file.managed", "name": "/long", "result": "ok", "comment": strings.Repeat("A", 10<<20),
				"changes": map[string]any{"diff": strings.Repeat("+", 1<<20)}},
		},
		"stages": []map[string]any{{"name": "converge", "duration_ns": 37_000_000, "error": attack}},
		"hooks":  map[string]any{attack: []map[string]any{{"name": attack, "error": attack}}},
		"units":  []map[string]any{{"unit": attack, "action": "restarted", "error": attack}},
		"health": []map[string]any{{"probe": attack, "error": attack}},
		"notes":  []string{attack},
	}
}

// rolledOut are rollouts of the fleet: one that two hosts of a wave halted, and one that has finished.
func rolledOut(hosts int, at time.Time) []pages.Rollout {
	return []pages.Rollout{
		{Ref: artifact.Ref{Project: "shop", Channel: "production"}, Version: "2.1", State: "halted",
			Next: "no host takes the release: `corpus rollout resume shop production` continues, and `corpus rollout abort " +
				"shop production` rolls back",
			Waves: []pages.Wave{
				{Name: "canary", Share: "1%", Hosts: hosts / 100, Healthy: hosts / 100, Open: true},
				{Name: "2", Share: "10%", Hosts: hosts / 10, Healthy: hosts / 30, Failed: 2, Why: "the rollout is halted"},
				{Name: "3", Share: "50%", Hosts: hosts/2 - hosts/10, Why: "the rollout is halted"},
				{Name: attack, Share: "100%", Hosts: hosts / 2, Why: attack}},
			Halts: []pages.Halt{{Host: "shop-production-useast1-00000", At: at.Add(time.Hour),
				Why: "it failed on 2 of 2 hosts, which is the limit (limit 2, 5%; " + attack + ")"},
				{Host: "a-host-that-is-gone", At: at, Why: attack}}},
		{Ref: artifact.Ref{Project: "base", Channel: "production"}, Version: "7", State: pages.Finished,
			Next:  "every host of the rollout has finished",
			Waves: []pages.Wave{{Name: "1", Share: "100%", Hosts: hosts, Healthy: hosts, Open: true}}},
	}
}

// site returns a fleet with a number of hosts, the first of which wrote a hostile report, and the directory of its
// pages.
func site(t testing.TB, hosts int) (dir string, v *fleet.View) {
	t.Helper()
	s := mem.New()
	key, _, err := hostkey.Open(filepath.Join(t.TempDir(), "host.key"))
	if err != nil {
		t.Fatal(err)
	}
	put := func(object string, data []byte) {
		t.Helper()
		if _, err := s.Put(t.Context(), object, bytes.NewReader(data), int64(len(data)), store.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	regions := []string{"useast1", "euwest1", "apsouth1"}
	for i := range hosts {
		r := hostrecord.Record{
			Project: "shop", Host: fmt.Sprintf("shop-production-%s-%05d", regions[i%3], i), Run: runID, Sequence: 7,
			Outcome: "converged", Service: place("2.1", 2), Base: place("7", 100), Agent: "1.4.0", Form: 2,
		}
		switch {
		case i == 0, i%997 == 1:
			r.Outcome, r.Exit, r.Service, r.Wanted = "rolled-back", 7, place("2.0", 1), place("2.1", 2)
		case i%1500 == 2:
			r.Outcome, r.Exit = "failed", 3
		case i%700 == 3:
			r.Quarantined, r.Service, r.Wanted = true, place("2.0", 1), place("2.1", 2)
		case i%800 == 4:
			r.Held, r.Service, r.Wanted = true, place("2.0", 1), place("2.1", 2)
		case i%90 == 5:
			r.Drifted = true
		}
		object, err := r.Key(key)
		if err != nil {
			t.Fatal(err)
		}
		sealed, err := key.Seal(object,
			[]byte(`{"error":"1 of 18 states failed: service.running web (web in app)","hint":"look at web.service: `+
				`journalctl -u web.service"}`))
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			hostile, _ := json.Marshal(map[string]string{"error": attack, "hint": attack})
			if sealed, err = key.Seal(object, hostile); err != nil {
				t.Fatal(err)
			}
			data, _ := json.Marshal(hostileReport(r.Host))
			place := "reports/shop/" + r.Host + "/" + runID + ".json"
			report, err := key.Seal(place, data)
			if err != nil {
				t.Fatal(err)
			}
			put(place, report)
		}
		put(object, sealed)
		put(hostkey.Place(r.Host, key.Public()), []byte("{}"))
	}
	at := time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC)
	listings := []trust.Listing{
		{Project: "base", Channels: map[string]trust.Pointer{"production": {Version: "7", Digest: digest(100)}}},
		{Project: "shop", Channels: map[string]trust.Pointer{"production": {Version: "2.1", Digest: digest(2)}},
			Releases: []artifact.Release{{Project: "shop", Version: "2.0", Digest: digest(1), Length: 4_200_000},
				{Project: "shop", Version: "2.1", Digest: digest(2), Length: 4_300_000}}},
	}
	v, err = fleet.Look(t.Context(), fleet.Query{Store: s, Listings: listings, Now: time.Now(), SilentAfter: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Explain(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	ref := artifact.Ref{Project: "shop", Channel: "production"}
	written, err := pages.Site{
		View: v, Store: s, Listings: listings, Detailed: 20,
		Histories: map[string][]pages.History{"shop": {{Ref: ref, Moves: []pages.Move{
			{At: at.Add(time.Hour), What: "pause", Version: "2.1", Digest: digest(2).Short(), Who: attack, Verified: true},
			{At: at, What: "promote", Version: "2.1", Digest: digest(2).Short(), Who: "anna@example.com", Points: true,
				Verified: true},
			{At: at.Add(-72 * time.Hour), What: "moved", Version: "2.0", Digest: digest(1).Short(), Points: true}}}}},
		Rollouts: rolledOut(hosts, at),
		Compare: func(context.Context, string, string, string) (pages.Comparison, error) {
			return pages.Comparison{Old: listings[1].Releases[0], New: listings[1].Releases[1], Files: true,
				Changed: []string{"app/server.py", attack}, Added: []string{"app/search.py"}, Listed: true,
				Packages: []string{"flask 3.0.2 -> 3.0.3"}}, nil
		},
	}.Write(t.Context(), inDir(dir))
	if err != nil || written != hosts {
		t.Fatal(written, err)
	}
	return dir, v
}
