package quarantine_test

import (
	"crypto/sha256"
	"errors"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/fault"
	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/quarantine"
	"github.com/corpus-agent/corpus-agent/agent/records"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/agent/turns"
	"github.com/corpus-agent/corpus-agent/artifact"
)

// deployed returns the quarantine of a host on which base 1.0 and shop 1.0 are deployed.
func deployed(t *testing.T) (*quarantine.Run, *report.Report) {
	t.Helper()
	host := &inspect.Host{Records: records.Records{Site: site.Site{Layout: layout.At(t.TempDir())}}}
	good := pairOf("1.0", "1.0")
	rep := &report.Report{}
	return &quarantine.Run{
		Host: host, ID: "2", Ledger: &ledger.Ledger{Good: &good}, Record: report.Record(rep, host.Secrets()),
		Turns: &turns.Run{}, Save: func() error { return nil },
	}, rep
}

func pairOf(base, service string) ledger.Pair {
	of := func(project, version string) artifact.Release {
		digest := artifact.NewDigest(sha256.Sum256([]byte(project + version)))
		return artifact.Release{Project: project, Version: version, Digest: digest}
	}
	first := of(artifact.Base, base)
	return ledger.Pair{Base: &first, Service: of("shop", service)}
}

func TestOtherReleaseOfAQuarantinedPairIsDeployed(t *testing.T) {
	r, rep := deployed(t)
	failed := pairOf("2.0", "2.0")
	r.Settle(failed, fault.Fault{Of: report.FaultOfRelease, Release: &failed.Service, Cause: errors.New("no\nmore")})
	if !r.Has(failed) || !r.FailedBefore(failed.Service) || r.FailedBefore(*failed.Base) {
		t.Fatalf("in quarantine: %+v", r.Ledger.Bad)
	}
	if list := r.List(); len(list) != 1 || list[0].Reason != "no" || list[0].Run != "2" {
		t.Errorf("in the report: %+v", list)
	}
	next := pairOf("2.0", "2.0")
	if r.Replace(&next); !next.Same(pairOf("2.0", "1.0")) {
		t.Errorf("deployed: %s", next)
	}
	if rep.Fault == nil || rep.Fault.Release == nil || rep.Fault.Release.Version != "2.0" {
		t.Errorf("the fault in the report: %+v", rep.Fault)
	}
}

func TestFailureOfTheHostQuarantinesNothing(t *testing.T) {
	r, rep := deployed(t)
	failed := pairOf("1.0", "2.0")
	r.Settle(failed, fault.Fault{Of: report.FaultOfHost, Cause: errors.New("no space left on device")})
	if r.Has(failed) || r.Ledger.Postponed == nil || rep.Fault.Retry == nil {
		t.Errorf("in quarantine: %+v; postponed %+v", r.Ledger.Bad, r.Ledger.Postponed)
	}
}

// A release of this run whose rollback fails in the same way is released.
func TestSameFailureOfTheRollbackReleases(t *testing.T) {
	r, _ := deployed(t)
	failed := pairOf("1.0", "2.0")
	r.Settle(failed, fault.Fault{Of: report.FaultOfRelease, Release: &failed.Service, Cause: errors.New("no")})
	if err := r.Release(failed, errors.New("no")); err != nil || r.Has(failed) {
		t.Errorf("%v, in quarantine: %+v", err, r.Ledger.Bad)
	}
}

// The failures of runs whose rollback failed in the same way are counted, and the retries wait.
func TestSameFailuresOfTheRollbackPostpone(t *testing.T) {
	first, _ := deployed(t)
	failed := pairOf("1.0", "2.0")
	for failures := 1; failures <= 3; failures++ {
		r, rep := deployed(t)
		r.Ledger = first.Ledger
		r.Settle(failed, fault.Fault{Of: report.FaultOfRelease, Release: &failed.Service, Cause: errors.New("no")})
		if err := r.Release(failed, errors.New("no")); err != nil {
			t.Fatal(err)
		}
		p := r.Ledger.Postponed
		if p == nil || p.Failures != failures || p.Next.After(p.At) != (failures > 1) || !rep.Fault.Retry.Equal(p.Next) {
			t.Errorf("after %d failures: postponed %+v, the fault %+v", failures, p, rep.Fault)
		}
	}
}

func TestRollbackByHandIsNoFailure(t *testing.T) {
	r, rep := deployed(t)
	left := pairOf("1.0", "2.0")
	r.Show(left, *r.Ledger.Good)
	if notes := strings.Join(rep.Notes, "\n"); notes != "would quarantine shop 2.0" {
		t.Errorf("notes %q", notes)
	}
	r.Leave(left)
	if !r.Has(left) || r.FailedBefore(left.Service) || r.Has(*r.Ledger.Good) {
		t.Errorf("in quarantine: %+v", r.Ledger.Bad)
	}
}
