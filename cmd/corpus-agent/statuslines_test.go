package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/service"
	"github.com/corpus-agent/corpus-agent/artifact"
)

// TestStatusBeginsWithDeployedReleases also checks that of a long quarantine only the releases that channels name, the
// newest ones, and a count are printed.
func TestStatusBeginsWithDeployedReleases(t *testing.T) {
	release := func(version string) artifact.Release {
		return artifact.Release{Project: "web", Version: version,
			Digest: artifact.Digest("sha256:" + strings.Repeat(version, 64)[:64])}
	}
	s := inspect.Status{Deployed: &ledger.Pair{Service: release("9")},
		Units:   []service.Unit{{Unit: "web.service", Active: "active"}},
		LastRun: &report.Report{Command: "deploy"}}
	for n := range 8 {
		bad := release(fmt.Sprint(n))
		s.Quarantined = append(s.Quarantined,
			ledger.Bad{Pair: ledger.Pair{Service: bad}, Release: &bad, Run: "r", Reason: "why"})
	}
	lines := func(all bool, named *ledger.Pair) string {
		var out bytes.Buffer
		p := &program{}
		p.Out = &out
		if err := p.printStatus(s, named, all); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	text := lines(false, &ledger.Pair{Service: release("2")})
	for _, want := range []string{"web 2 since", "web 5 since", "web 6 since", "web 7 since",
		"4 older: corpus-agent status --all"} {
		if !strings.Contains(text, want) {
			t.Errorf("status lacks %q:\n%s", want, text)
		}
	}
	if strings.Count(text, "quarantined ") != 4 ||
		strings.Index(text, "last run ") > strings.Index(text, "quarantined ") ||
		strings.Index(text, "unit ") > strings.Index(text, "last run ") {
		t.Errorf("status is\n%s", text)
	}
	if text := lines(true, nil); strings.Count(text, "quarantined ") != 8 || strings.Contains(text, "older") {
		t.Errorf("status --all is\n%s", text)
	}
}
