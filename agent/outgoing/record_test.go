package outgoing_test

import (
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/outgoing"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact"
)

// TestFailureWhileWaitingIsOfTheDeployedRelease checks a host on which 1.0 fails while it waits for 1.1 in a rollout:
// its record does not have 1.1, since views would count a failure of a release that never ran.
func TestFailureWhileWaitingIsOfTheDeployedRelease(t *testing.T) {
	of := func(version string) *ledger.Pair {
		return &ledger.Pair{Service: artifact.Release{Project: "myapp", Version: version,
			Digest: artifact.NewDigest([32]byte{version[2]})}}
	}
	run := report.Report{Service: "myapp", Host: "h", Exit: 3, Outcome: report.Failed, Left: of("1.0"), To: of("1.0"),
		Withheld: of("1.1")}
	if r := outgoing.Record(&run, false); r.Wanted != nil || r.Service == nil || r.Service.Version != "1.0" {
		t.Errorf("a failed run of 1.0 is recorded with the wanted release %+v and the service %+v", r.Wanted, r.Service)
	}
	run.Exit, run.Outcome = 0, report.Converged
	if r := outgoing.Record(&run, false); r.Wanted == nil || r.Wanted.Version != "1.1" {
		t.Errorf("a host that waits for 1.1 is recorded with the wanted release %+v", r.Wanted)
	}
}

// TestRecordSaysWhetherBaseIsAtFault checks which of base and the service the record of a host names as at fault.
func TestRecordSaysWhetherBaseIsAtFault(t *testing.T) {
	release := func(project string) artifact.Release {
		return artifact.Release{Project: project, Version: "2", Digest: artifact.NewDigest([32]byte{project[0]})}
	}
	base, service := release(artifact.Base), release("myapp")
	kept := func(all ...artifact.Release) (list []report.Quarantined) {
		for _, r := range all {
			list = append(list, report.Quarantined{Release: r})
		}
		return list
	}
	named := &ledger.Pair{Base: &base, Service: service}
	for _, c := range []struct {
		what       string
		run        report.Report
		base, also bool
	}{
		{"both in quarantine", report.Report{Withheld: named, Quarantined: kept(base, service)}, false, true},
		{"base in quarantine", report.Report{Withheld: named, Quarantined: kept(base)}, true, false},
		{"the service in quarantine", report.Report{Withheld: named, Quarantined: kept(service)}, false, false},
		{"a converge that fails in base", report.Report{Exit: 3, FailedInBase: true}, true, false},
		{"a converge that fails in the service", report.Report{Exit: 3}, false, false},
		{"a deploy that fails in base through the service", report.Report{Exit: 7, FailedInBase: true,
			Fault: &report.Fault{Of: report.FaultOfRelease, Release: &service}}, false, false},
		{"a deploy that fails in base because of the host", report.Report{Exit: 7, FailedInBase: true,
			Fault: &report.Fault{Of: report.FaultOfHost}}, false, false},
	} {
		c.run.Service, c.run.Host = "myapp", "h"
		if r := outgoing.Record(&c.run, false); r.OfBase != c.base || r.AlsoBase != c.also {
			t.Errorf("%s: of base %v, also base %v", c.what, r.OfBase, r.AlsoBase)
		}
	}
}
