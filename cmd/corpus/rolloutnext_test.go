package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	hosts "github.com/corpus-agent/corpus-agent/agent/rollout"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
)

// failedRollout returns a rollout to two hosts, of which one failed and halts it, and the times of its start and of
// that failure.
func failedRollout(t *testing.T) (u *activeRollout, start, failed time.Time) {
	t.Helper()
	start = time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
	key, _, err := hostkey.Open(filepath.Join(t.TempDir(), "host.key"))
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := hostkey.Open(filepath.Join(t.TempDir(), "host.key"))
	if err != nil {
		t.Fatal(err)
	}
	u = &activeRollout{ref: artifact.Ref{Project: "myapp", Channel: "production"}, version: "2", now: time.Now(),
		plan: rollout.Plan{Waves: []rollout.Wave{{Share: rollout.All}}, Halt: rollout.Halt{Hosts: 1},
			Healthy: rollout.All}}
	roster := hosts.Roster{Hosts: []hosts.Member{{Name: "a", Key: key.Public()}, {Name: "b", Key: other.Public()}}}
	begun := rollout.Start{ID: "1", Release: "sha256:" + strings.Repeat("ab", 32), At: start, Hosts: []int{2}}
	s := mem.New()
	if begun.Roster, err = hosts.WriteRoster(t.Context(), s, u.ref, begun.ID, roster); err != nil {
		t.Fatal(err)
	}
	u.rollout = hosts.New(u.ref, u.plan, begun, roster)
	if err := u.rollout.Record(t.Context(), s, key, "a", hosts.Failed, "20260504T120000.000000"); err != nil {
		t.Fatal(err)
	}
	if u.seen, err = u.rollout.Read(t.Context(), s, u.now); err != nil {
		t.Fatal(err)
	}
	return u, start, u.seen.Results[0].At
}

// TestHaltsShowWhateverElseStopsARollout checks that a pause does not hide a halt, that the time of a halt is that of
// the failure, and that a withdrawn release needs an abort, also after a halt.
func TestHaltsShowWhateverElseStopsARollout(t *testing.T) {
	u, start, failed := failedRollout(t)
	for _, c := range []struct {
		what                  string
		limit                 int
		paused, yanked        bool
		state, next, attended string
		since                 time.Time
	}{
		{"halted", 1, false, false, "halted", "resume myapp production` continues", fleet.Halted, failed},
		{"paused", 2, true, false, "paused", "until `corpus rollout resume", fleet.Paused, start.Add(time.Minute)},
		{"paused and halted", 1, true, false, "halted", "it is paused as well", fleet.Halted, failed},
		{"halted, then withdrawn", 1, false, true, "withdrawn", "`corpus rollout abort", fleet.WithdrawnRollout, start},
		{"withdrawn", 2, false, true, "withdrawn", "`corpus rollout abort", fleet.WithdrawnRollout, start},
	} {
		u.plan.Halt.Hosts, u.yanked = c.limit, c.yanked
		u.rollout.Start.Paused = c.paused
		u.rollout.Start.Moves = []rollout.Move{{What: "pause", At: start.Add(time.Minute)}}
		state, next := u.next(1, 1)
		if state != c.state || !strings.Contains(next, c.next) {
			t.Errorf("%s: %q, %q; want %q and %q", c.what, state, next, c.state, c.next)
		}
		a, _ := u.stopped()
		if a.What != c.attended || !a.Since.Equal(c.since) {
			t.Errorf("%s: the fleet says %q since %v, want %q since %v", c.what, a.What, a.Since, c.attended, c.since)
		}
		if got := u.mayContinue() != nil; got != c.yanked {
			t.Errorf("%s: a resume is refused: %v", c.what, got)
		}
	}
}

// TestLimitsThatNeverApply checks when the limit of failed hosts cannot be reached.
func TestLimitsThatNeverApply(t *testing.T) {
	ref := artifact.Ref{Project: "myapp", Channel: "production"}
	for _, c := range []struct {
		limit rollout.Halt
		hosts int
		want  string
	}{
		{rollout.Halt{Share: 5 * rollout.Percent}, 9, "(5%) never applies to 9 hosts of myapp/production"},
		{rollout.Halt{Share: 5 * rollout.Percent}, 20, ""},
		{rollout.Halt{Share: 5 * rollout.Percent}, 0, ""},
		{rollout.Halt{Hosts: 2, Share: 5 * rollout.Percent}, 9, ""},
		{rollout.Halt{Hosts: 10, Share: 5 * rollout.Percent}, 9, "it is more than 9 hosts, and a share counts from 20"},
		{rollout.Halt{Hosts: 2}, 1, ""},
	} {
		got := neverHalts(ref, c.limit, c.hosts)
		if !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("limit %v of %d hosts: %q, want %q", c.limit, c.hosts, got, c.want)
		}
	}
}
