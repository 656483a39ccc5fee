package main

import (
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	hosts "github.com/corpus-agent/corpus-agent/agent/rollout"
)

const statusLine = "rollout status myapp production --trust-root @keys/root.json"

// TestAbortedRolloutSaysWhenAllHostsAreBack checks that the status of an aborted rollout counts the hosts that are
// back, those that have its release, and those that have not reported since, and says when all are back.
func TestAbortedRolloutSaysWhenAllHostsAreBack(t *testing.T) {
	s, a, b := rollingStore(t)
	s.expect(0, "point myapp production 1.1", "its rollout to 2 hosts")
	a.record("1.1", nil)
	a.result(hosts.Healthy)
	b.age(time.Minute)
	s.expect(0, "rollout abort myapp production", "is aborted")
	s.expect(0, statusLine, "next: hosts that took the release go back to 1.0; of 2 hosts, back: 0, still with the "+
		"release: 1, no report since the abort: 1\n")
	s.expect(0, statusLine, "  still with the release: myapp-production-1; a host goes back at its next run")
	s.expect(0, statusLine, "  no report since the abort: myapp-production-2; a host reports within reports.heartbeat")
	a.record("1.0", nil)
	s.expect(0, statusLine, "of 2 hosts, back: 1, still with the release: 0, no report since the abort: 1\n")
	b.record("1.0", func(r *hostrecord.Record) { r.Held = true })
	s.expect(0, statusLine, "next: nothing: all hosts are back, and none of 2 hosts has the release")
	var status rolloutStatus
	s.json(statusLine, &status)
	if got := status.Back; got == nil || got.Hosts != 2 || got.Back != 2 || len(got.Still)+len(got.Unknown) > 0 {
		t.Errorf("the JSON output says %+v", got)
	}
	s.expect(0, "fleet --html @pages --trust-root @keys/root.json", "wrote pages")
	if page := s.read("pages/index.html"); !strings.Contains(page, "all hosts are back") {
		t.Errorf("the pages do not say that all hosts are back:\n%s", page)
	}
}

// TestAbortedRolloutThatNoHostHadTaken checks that the status of a rollout that was aborted before a host took its
// release counts no host as one without a report.
func TestAbortedRolloutThatNoHostHadTaken(t *testing.T) {
	s, a, b := rollingStore(t)
	s.expect(0, "point myapp production 1.1", "its rollout to 2 hosts")
	a.age(time.Minute)
	b.age(time.Minute)
	s.expect(0, "rollout abort myapp production", "is aborted")
	s.expect(0, statusLine, "next: nothing: no host had taken the release, as the results and records of 2 hosts show\n")
	s.lacks("no report since")
	var status rolloutStatus
	s.json(statusLine, &status)
	if got := status.Back; got == nil || !got.Untaken {
		t.Errorf("the JSON output says %+v", got)
	}
}

// TestAbortedRolloutCountsHeldAndFailingHosts checks that a host that a person holds at the release of an aborted
// rollout, and one whose newest run could not begin, count as what they are.
func TestAbortedRolloutCountsHeldAndFailingHosts(t *testing.T) {
	s, a, b := rollingStore(t)
	s.expect(0, "point myapp production 1.1", "its rollout to 2 hosts")
	a.record("1.1", nil)
	a.result(hosts.Healthy)
	s.expect(0, "rollout abort myapp production", "is aborted")
	a.record("1.1", func(r *hostrecord.Record) { r.Held = true })
	w := hostrecord.Writer{Store: b.store, Key: b.key, File: b.file, Now: time.Now()}
	if err := w.WriteFailure(t.Context(), "myapp", b.name, hostrecord.Detail{Error: "the disk is full"}); err != nil {
		t.Fatal(err)
	}
	s.expect(0, statusLine, "of 2 hosts, back: 0, still with the release: 0, held with the release: 1, failing: 1, no "+
		"report since the abort: 0\n")
	s.expect(0, statusLine, "  held with the release: myapp-production-1; a host goes back at its next run after "+
		"`corpus-agent unhold` there\n")
	s.expect(0, statusLine, "  failing: myapp-production-2; a host goes back once a run succeeds there")
}

// TestReplacedMachineIsNotCalledOneWithoutRecord checks that the status and the fleet say of a host that another key
// signs its record, and what to do, while the old key is registered and after it was forgotten.
func TestReplacedMachineIsNotCalledOneWithoutRecord(t *testing.T) {
	s, a, b := rollingStore(t)
	s.expect(0, "point myapp production 1.1", "its rollout to 2 hosts")
	a.newKey()
	a.record("1.0", nil)
	const want = "waits for myapp-production-1 in wave 1: its record is signed with another key than the rollout has " +
		"for it: `corpus host show myapp-production-1` shows the keys; if the machine was replaced: `corpus host forget " +
		"myapp-production-1` if the key of the old machine is still registered, and once the new machine has reported " +
		"`corpus point myapp production 1.1`"
	s.expect(0, statusLine, want)
	s.lacks("no record")
	s.expect(0, "fleet --trust-root @keys/root.json", "wrong key")
	s.lacks("missing in a rollout")
	s.expect(0, "host forget myapp-production-1", "")
	a.record("1.0", nil)
	s.expect(0, statusLine, want)
	s.lacks("no record")
	b.result(hosts.Healthy)
	s.expect(0, "project rollout myapp production --healthy 50%", "")
	s.expect(0, statusLine, "it has arrived: enough hosts of each wave are healthy, and the store has no record that the "+
		"key of the rollout signed of 1 other host: myapp-production-1")
	s.expect(0, "project rollout myapp production --healthy 100%", "")
	s.expect(0, "point myapp production 1.1", "its rollout to 2 hosts")
	s.expect(0, statusLine, "waits for myapp-production-1 in wave 1\n")
	a.result(hosts.Healthy)
	a.newKey()
	a.record("1.1", nil)
	s.expect(0, statusLine, "results of 1 host count, whose records another key signs than the rollout has")
	s.lacks("no record")
}

// TestReplacedMachineWhoseFirstRunFailedIsNamed checks that the status and the fleet name a machine that replaced
// another one although it recorded no result, with the way out: one that has registered its key alone, and one whose
// record is in the store beside that of the machine before.
func TestReplacedMachineWhoseFirstRunFailedIsNamed(t *testing.T) {
	s, a, _ := rollingStore(t)
	s.expect(0, "point myapp production 1.1", "its rollout to 2 hosts")
	a.age(time.Hour)
	a.newKey()
	const forget = "if the machine was replaced: `corpus host forget myapp-production-1`"
	s.expect(0, statusLine, "waits for myapp-production-1 in wave 1: another key than the rollout has for it is "+
		"registered for it")
	s.expect(0, statusLine, forget)
	s.expect(0, "fleet --trust-root @keys/root.json", "conflict: myapp 1.0 on 1 host: myapp-production-1")
	s.expect(0, "fleet --trust-root @keys/root.json", "if the machine was replaced: corpus host forget myapp-production-1")
	a.file = s.path("record of the new machine")
	a.record("1.0", func(r *hostrecord.Record) { r.Outcome, r.Exit, r.Sequence = "failed", 3, 1 })
	s.expect(0, statusLine, "waits for myapp-production-1 in wave 1: its record is signed with another key")
	s.expect(0, statusLine, forget)
	s.expect(0, "fleet --trust-root @keys/root.json", "conflict: myapp 1.0 on 1 host: myapp-production-1")
	s.lacks("if it is gone")
	if err := a.store.Delete(t.Context(), hostkey.Place(a.name, a.key.Public())); err != nil {
		t.Fatal(err)
	}
	s.expect(0, "fleet --trust-root @keys/root.json", "wrong key: myapp 1.0 on 1 host: myapp-production-1")
	s.expect(0, "fleet --trust-root @keys/root.json", "if the machine was replaced: corpus host forget myapp-production-1")
}

// TestRenamedHostIsNotCalledOneWithoutRecord checks that the status says under which name a host of the roster runs
// that was renamed.
func TestRenamedHostIsNotCalledOneWithoutRecord(t *testing.T) {
	s, a, _ := rollingStore(t)
	s.expect(0, "point myapp production 1.1", "its rollout to 2 hosts")
	a.name = "myapp-production-9"
	if err := a.key.Register(t.Context(), a.store, hostkey.Registration{Host: a.name}); err != nil {
		t.Fatal(err)
	}
	a.record("1.0", nil)
	s.expect(0, statusLine, "waits for myapp-production-1 in wave 1: it was renamed, and keeps its place as "+
		"myapp-production-9: corpus host show myapp-production-9\n")
	s.expect(0, statusLine+" --json", `"now": "myapp-production-9"`)
	s.expect(0, "fleet --trust-root @keys/root.json", "renamed on 1 host: myapp-production-1")
	s.lacks("no record")
}

// TestStatusNamesHostsThatHoldPlaces checks that the status names the host for whose place of a cluster others wait,
// until it releases the place.
func TestStatusNamesHostsThatHoldPlaces(t *testing.T) {
	s, a, _ := rollingStore(t)
	s.expect(0, "project rollout myapp production --at-once 50%", "")
	s.expect(0, "point myapp production 1.1", "its rollout to 2 hosts")
	r, e := s.rollout(a.store)
	lease, _, err := r.Acquire(t.Context(), a.store, a.key, r.Roster.Places()[0], a.run, e, time.Now())
	if err != nil || lease == nil {
		t.Fatal(lease, err)
	}
	s.expect(0, statusLine, "  deploys: myapp-production-1, which holds a place of cluster myapp-production since 20")
	s.expect(0, statusLine, "next: 2 hosts without a result: all places of their clusters are taken, by "+
		"myapp-production-1\n")
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.expect(0, statusLine, "waits for myapp-production-1")
	s.lacks("deploys: ")
}
