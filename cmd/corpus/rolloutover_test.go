package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	hosts "github.com/corpus-agent/corpus-agent/agent/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/rollout"
)

// TestArrivedRolloutWithoutRemovedHosts checks that a rollout that has arrived is finished if the hosts that it lacks
// were removed from the store, and that its status does not say that pointing the channel again starts it again.
func TestArrivedRolloutWithoutRemovedHosts(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	u, h := waitingRollout(now, now.Add(-time.Hour))
	h.Host = "h"
	r := rolloutStatus{Ref: u.ref, Version: "2", State: "running", over: true,
		Waves: []waveStatus{{Name: "all", Hosts: 8, Healthy: 1, Waiting: 7, Open: true}}}
	u.addWaiting(&r, []fleet.Host{h})
	var b bytes.Buffer
	if r.writeWaiting(&b); !strings.Contains(b.String(), "the rollout has arrived without it") ||
		strings.Contains(b.String(), "again") {
		t.Errorf("the hosts that are gone are described as\n%s", &b)
	}
	u.arrivedWithout(&r, 7, []fleet.Host{h})
	if r.State != "finished" || !strings.Contains(r.Next, "the store has no record of 7 other hosts: a, b") {
		t.Errorf("without the other hosts the rollout is %s: %s", r.State, r.Next)
	}
	r.State = "running"
	if u.arrivedWithout(&r, 8, []fleet.Host{h}); r.State != "running" {
		t.Errorf("a rollout that waits for a host with a record is %s", r.State)
	}
}

// TestFinishedRolloutThatDidNotArriveIsStuck checks that a rollout in which every host has a result, and too few are
// healthy, is not called finished.
func TestFinishedRolloutThatDidNotArriveIsStuck(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		healthy rollout.Share
		skipped int
		state   string
	}{{rollout.All, 0, "stuck"}, {rollout.All, 1, "finished"}, {50 * rollout.Percent, 0, "finished"}} {
		u, _ := waitingRollout(now, now.Add(-time.Hour))
		u.plan.Healthy, u.rollout.Start.Skipped = c.healthy, c.skipped
		u.seen.Results = nil
		for i, name := range strings.Split("abcdefgh", "") {
			outcome := hosts.Healthy
			if i == 0 {
				outcome = hosts.Failed
			}
			u.seen.Results = append(u.seen.Results, hosts.Entry{Name: hosts.Name{Host: name, Outcome: outcome}})
		}
		state, next := u.finished(u.failed())
		if state != c.state || !strings.Contains(next, "it failed on 1 host") {
			t.Errorf("healthy %s, skipped %d: %s: %s", c.healthy, c.skipped, state, next)
		}
	}
}

// TestWaitingHostNamesTheReleaseThatFailed checks that the status says which release a host rolled back.
func TestWaitingHostNamesTheReleaseThatFailed(t *testing.T) {
	h := fleet.Host{State: fleet.RolledBack}
	h.Host, h.Wanted = "a", &hostrecord.Place{Version: "1.1"}
	if got := (&activeRollout{}).problemOf(h); got != "its newest run rolled back from 1.1" {
		t.Errorf("the problem is %q", got)
	}
}
