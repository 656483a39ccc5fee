package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// report writes a host's report into the store, as an agent does.
func (s *shell) report(project, host string, ended time.Time, rest string) {
	s.t.Helper()
	if err := os.MkdirAll(s.path("store/reports/"+project+"/"+host), 0o755); err != nil {
		s.t.Fatal(err)
	}
	run := ended.UTC().Format("20060102T150405.000000")
	s.write("store/reports/"+project+"/"+host+"/"+run+".json",
		fmt.Sprintf(`{"id": %q, "host": %q, "ended": %q%s}`, run, host, ended.UTC().Format(time.RFC3339), rest))
}

// TestUpgradeLooksAtTheAgentsOfHosts checks that a store is not upgraded while a host's newest report comes from an
// agent that does not read the new format.
func TestUpgradeLooksAtTheAgentsOfHosts(t *testing.T) {
	const newer = `, "agent": "9.1.0", "reads_form": 2`
	now := time.Now()
	s := newStore(t)
	s.artifact("one", "1")
	s.expect(0, "publish myapp 1.0 @one.tar.zst --channel testing", "")
	s.report("myapp", "app-1", now.Add(-2*time.Hour), newer)
	s.report("myapp", "app-2", now.Add(-3*time.Hour), newer)
	s.report("myapp", "app-2", now.Add(-2*time.Hour), "") // the agent was replaced by an older one
	s.report("web", "web-1", now.Add(-2*time.Hour), `, "agent": "0.9", "reads_form": 1`)
	s.report("web", "web-2", now.Add(-2*time.Hour), "")
	s.report("web", "web-2", now.Add(-time.Hour), newer)
	s.report("web", "gone", now.Add(-100*24*time.Hour), "")
	targets := s.read("store/metadata/timestamp.json")
	s.expect(4, "store upgrade", "nothing was written")
	for _, says := range []string{"the agents of 2 of 4 hosts", "app-2 (an earlier version)", "web-1 (0.9)", "--force"} {
		if !strings.Contains(s.err, says) {
			t.Errorf("store upgrade does not print %q:\n%s", says, s.err)
		}
	}
	for _, host := range []string{"app-1", "web-2", "gone"} {
		if strings.Contains(s.err, host) {
			t.Errorf("store upgrade names %s:\n%s", host, s.err)
		}
	}
	if s.read("store/metadata/timestamp.json") != targets {
		t.Error("the store was changed")
	}
	s.expect(0, "store upgrade --force", "end with the next publish")
	s.expect(0, "publish myapp 1.0 @one.tar.zst --channel production", "")
}

func TestUpgradeWithNewAgentsOrWithoutReports(t *testing.T) {
	s := newStore(t)
	s.expect(0, "store upgrade", "no host has uploaded a report")
	s = newStore(t)
	s.report("myapp", "app-1", time.Now(), `, "reads_form": 2`)
	s.expect(0, "store upgrade", "end with the next publish")
	if strings.Contains(s.err, "warning") {
		t.Errorf("store upgrade warns:\n%s", s.err)
	}
}
