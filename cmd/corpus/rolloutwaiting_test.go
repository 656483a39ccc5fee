package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	hosts "github.com/corpus-agent/corpus-agent/agent/rollout"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/rollout"
)

// waitingRollout returns a rollout to hosts a to h in one wave, which started at a time, of which h has a result, and
// the record of a host that has its release and was seen now.
func waitingRollout(now, start time.Time) (*activeRollout, fleet.Host) {
	digest := artifact.Digest("sha256:" + strings.Repeat("ab", 32))
	u := &activeRollout{ref: artifact.Ref{Project: "myapp", Channel: "production"}, now: now,
		plan: rollout.Plan{Waves: []rollout.Wave{{Name: "all", Share: rollout.All}}}}
	var roster hosts.Roster
	for _, name := range strings.Split("abcdefgh", "") {
		roster.Hosts = append(roster.Hosts, hosts.Member{Name: name})
	}
	u.rollout = hosts.New(u.ref, u.plan, rollout.Start{Release: string(digest), At: start}, roster)
	u.seen.Results = []hosts.Entry{{Name: hosts.Name{Host: "h", Outcome: hosts.Healthy}}}
	r := hostrecord.Record{Outcome: "converged",
		Service: &hostrecord.Place{Channel: "production", Version: "2", Digest: digest.Short()}}
	return u, fleet.Host{State: fleet.Healthy, Listed: hostrecord.Listed{Signed: true, Seen: now, Record: r}}
}

// TestHostsWithoutResultsAreFoundAtOnce checks that hosts with the release and without a result are found, however
// often they renew their records, and that hosts whose result may still arrive are not.
func TestHostsWithoutResultsAreFoundAtOnce(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		what                 string
		start, resumed, ran  time.Duration // before now
		host, outcome, found string
	}{
		{"record of a run since the start, renewed now", time.Hour, 0, 50 * time.Minute, "a", "", "a"},
		{"first run since the start", time.Minute, 0, 30 * time.Second, "a", "", "a"},
		{"release from before the start", time.Minute, 0, time.Hour, "a", "", ""},
		{"release from before the start, which is long ago", time.Hour, 0, 2 * time.Hour, "a", "", "a"},
		{"release from before the last resume", time.Hour, time.Minute, 50 * time.Minute, "a", "", ""},
		{"release from before a resume long ago", time.Hour, 20 * time.Minute, 50 * time.Minute, "a", "", "a"},
		{"clock of the host ahead of the store's", time.Minute, 0, -time.Hour, "a", "", "a"},
		{"a result", time.Hour, 0, 50 * time.Minute, "h", "", ""},
		{"not in the roster", time.Hour, 0, 50 * time.Minute, "z", "", ""},
		{"a run that was interrupted", time.Hour, 0, 50 * time.Minute, "a", "interrupted", ""},
	} {
		u, h := waitingRollout(now, now.Add(-c.start))
		if c.resumed > 0 {
			u.rollout.Start.Moves = []rollout.Move{{What: "resume", At: now.Add(-c.resumed)}}
		}
		h.Host, h.Run = c.host, now.Add(-c.ran).Format("20060102T150405.000000")
		if c.outcome != "" {
			h.Outcome = c.outcome
		}
		if got := strings.Join(u.withoutResult([]fleet.Host{h}), " "); got != c.found {
			t.Errorf("%s: found %q, want %q", c.what, got, c.found)
		}
	}
}

// TestStatusNamesWaitingHosts checks that the status names the hosts for which a wave waits, those with a problem
// first, and the number of further hosts.
func TestStatusNamesWaitingHosts(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	u, h := waitingRollout(now, now.Add(-time.Hour))
	var known []fleet.Host
	for _, name := range strings.Split("abcdef", "") { // g has no record
		h.Host = name
		known = append(known, h)
	}
	for i := range known {
		known[i].Service = &hostrecord.Place{Version: "1", Digest: "00000000"}
	}
	known[2].State, known[2].Exit = fleet.Failed, 1
	known[3].State = fleet.Held
	known[4].Silent, known[4].Seen = true, now.Add(-3*time.Hour)
	r := rolloutStatus{Ref: u.ref, Version: "2",
		Waves: []waveStatus{{Name: "all", Hosts: 8, Healthy: 1, Waiting: 7, Open: true}}}
	u.addWaiting(&r, known)
	if got := u.gone(known); !slices.Equal(got, []string{"g"}) {
		t.Errorf("the hosts that the store does not know are %q", got)
	}
	var b bytes.Buffer
	r.writeWaiting(&b)
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	for i, want := range []string{
		"waits for c in wave all: its newest run failed (exit code 1): corpus host show c",
		"waits for d in wave all: it is held: corpus host show d",
		"waits for e in wave all: it has not reported since 2026-05-04 09:00",
		"waits for g in wave all: the store has no record of it: if the machine is gone: `corpus host forget` with its " +
			"name, while `corpus host ls` lists its key, and then `corpus point myapp production 2`, which starts",
		"waits for a in wave all",
		"waits for b in wave all",
		"and for 1 more: corpus fleet --behind",
	} {
		if i >= len(lines) || !strings.Contains(lines[i], want) {
			t.Fatalf("line %d lacks %q:\n%s", i+1, want, &b)
		}
	}
	if slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, "waits for h") }) {
		t.Errorf("a host with a result is listed as waiting:\n%s", &b)
	}
}

// TestRestOfWaitingHostsNamesNoEmptyList checks that the status names the list of the hosts that are behind only if
// that list has one of the hosts that it leaves out.
func TestRestOfWaitingHostsNamesNoEmptyList(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	u, h := waitingRollout(now, now.Add(-time.Minute))
	h.Host, h.Run = "a", now.Add(-time.Hour).Format(hostrecord.RunTime) // its result may still come
	for _, c := range []struct {
		what  string
		known []fleet.Host
		over  bool
		want  string
	}{
		{"records that cannot be read", nil, false, "  and for 1 more: corpus fleet --behind\n"},
		{"one host with the release and six without a record", []fleet.Host{h}, false, "  and for 1 more\n"},
		{"a rollout that has arrived without the others", []fleet.Host{}, true, ""},
	} {
		r := rolloutStatus{Ref: u.ref, State: "running", over: c.over,
			Waves: []waveStatus{{Name: "all", Hosts: 8, Healthy: 1, Waiting: 7, Open: true}}}
		u.addWaiting(&r, c.known)
		u.arrivedWithout(&r, 7, c.known)
		var b bytes.Buffer
		if r.writeWaiting(&b); !strings.HasSuffix(b.String(), c.want) || c.want == "" && b.Len() > 0 {
			t.Errorf("%s: the status ends without %q:\n%s", c.what, c.want, &b)
		}
	}
}
