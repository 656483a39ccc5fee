package agent_test

import (
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/fleet"
)

// TestFleetKeepsErrorOfQuarantine reads from the fleet view why a release is in quarantine: right after its failure,
// after runs that withhold it, and after the record was renewed.
func TestFleetKeepsErrorOfQuarantine(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.Config.UploadReports, l.Config.Heartbeat = true, 30*time.Minute
	at := time.Now()
	l.Now = func() time.Time { return at }
	l.publish("1")
	l.expect(exit.OK)
	at = at.Add(time.Minute)
	l.publish("2-broken")
	l.expect(exit.RolledBack)
	why := func(what fleet.State) (text, hint string) {
		t.Helper()
		v, err := fleet.Look(t.Context(), fleet.Query{Store: l.repo.Store, Now: at})
		must(t, err)
		must(t, v.Explain(t.Context(), l.repo.Store))
		for _, a := range v.Attention {
			if a.What == string(what) {
				return a.Why, a.Hint
			}
		}
		t.Fatalf("no host is %s: %+v", what, v.Attention)
		return "", ""
	}
	failed, _ := why(fleet.RolledBack)
	if failed == "" {
		t.Fatal("the failure has no error")
	}
	for range 3 {
		at = at.Add(35 * time.Minute) // the record is renewed
		l.expect(exit.OK)
		reason, hint := why(fleet.Quarantined)
		if reason == "" || !strings.Contains(failed, reason) && !strings.Contains(reason, failed) ||
			!strings.Contains(hint, "publish a corrected version") {
			t.Errorf("why: %q, hint %q; the failure was %q", reason, hint, failed)
		}
	}
}
