package agent_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/hostkey"
)

// TestLostHostKeyIsReported removes the key of a host: each run and status report that its signatures do not count,
// until a person removes the former key.
func TestLostHostKeyIsReported(t *testing.T) {
	t.Parallel()
	f := newRolling(t, 1, twoWaves())
	h := f.hosts[0]
	first, _, err := hostkey.Open(h.Layout.HostKey())
	must(t, err)
	says := func(want bool) {
		t.Helper()
		r := f.run(h, exit.OK)
		notedLoss := strings.Contains(strings.Join(r.Notes, "\n"),
			"another key than the one that is registered first for its name ("+string(first.Public())+")")
		s, err := h.Status()
		must(t, err)
		if notedLoss != want || (s.Rekeyed == string(first.Public())) != want || !want && s.Rekeyed != "" {
			t.Errorf("the run reports it: %v, and status has %q, want %v; notes %q", notedLoss, s.Rekeyed, want, r.Notes)
		}
	}
	says(false)
	must(t, os.Remove(h.Layout.HostKey()))
	says(true)
	says(true)
	f.store.now = f.store.now.Add(25 * time.Hour) // the host registers again
	says(true)
	must(t, f.store.Delete(t.Context(), hostkey.Place(h.name+".example.com", first.Public())))
	f.store.now = f.store.now.Add(25 * time.Hour)
	f.run(h, exit.OK)
	says(false)
}
