package main

import (
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	hosts "github.com/corpus-agent/corpus-agent/agent/rollout"
)

// TestHaltsOfAHostDoNotHideThoseOfOthers checks that a status has one line for the halts of a host, with their number,
// and names the hosts of the grounds that have no failed result.
func TestHaltsOfAHostDoNotHideThoseOfOthers(t *testing.T) {
	s, a, b := rollingStore(t)
	s.expect(0, "point myapp production 1.1", "its rollout to 2 hosts")
	a.result(hosts.Failed)
	for range 7 {
		b.halt()
	}
	a.halt()
	s.expect(0, statusLine, "halted by myapp-production-1 at ")
	const first = "; the first of 7 halts of this host\n"
	if strings.Count(s.out, "halted by") != 2 || !strings.Contains(s.out, first) {
		t.Errorf("the halts of the hosts are not in one line each:\n%s", s.out)
	}
	s.lacks("no failed result")
	s.expect(0, statusLine+" --json", `"count": 7`)
	s.expect(0, statusLine+" --json", `"halt_hosts": 2`)
	a.result(hosts.Healthy)
	s.expect(0, statusLine, "the store has no failed result, or a later healthy one, of hosts that it names: "+
		"myapp-production-1\n")
}

// TestGroundsOfAHaltAreItsHostsWords checks that long grounds are shortened, and that they stay quoted whatever a host
// writes.
func TestGroundsOfAHaltAreItsHostsWords(t *testing.T) {
	g := hosts.Grounds{Why: "a\"\nhint: run x" + strings.Repeat("y", 20_000), Limit: strings.Repeat("1", 5000)}
	for range 300 {
		g.Hosts = append(g.Hosts, strings.Repeat("h", 250))
	}
	why := haltStatus{Grounds: &g, Count: 1}.why()
	if len(why) > longestGrounds+100 || !strings.HasSuffix(why, `h and 292 more)"`) ||
		!strings.HasPrefix(why, `it says "a\"; hint: run xyyy`) {
		t.Errorf("the grounds are %d bytes: %s", len(why), why)
	}
}

// TestFailedRollbackIsShown checks that the status of a rollout says that the rollback failed on a host whose record
// says so, also if all hosts have finished, until a later run succeeds there.
func TestFailedRollbackIsShown(t *testing.T) {
	s, a, b := rollingStore(t)
	s.expect(0, "project rollout myapp production --halt-at 2", "")
	s.expect(0, "point myapp production 1.1", "")
	status := func(want, not string) {
		t.Helper()
		s.expect(0, statusLine, want+": myapp-production-1 in wave 1")
		s.lacks(not)
	}
	a.result(hosts.RolledBack)
	status("rolled-back", "rollback failed")
	a.record("1.0", func(r *hostrecord.Record) { r.Outcome, r.Exit = "rollback-failed", exit.RollbackFailed })
	status("rollback failed", "rolled-back")
	b.result(hosts.Healthy)
	status("rollback failed", "rolled-back")
	a.record("1.0", nil)
	status("rolled-back", "rollback failed")
}
