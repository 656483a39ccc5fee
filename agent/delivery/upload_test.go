package delivery

import (
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact"
)

// TestQuarantineKeepsItsReason checks that the record of a run without an error has the reason of the quarantine of the
// release that the channel names, and of no other.
func TestQuarantineKeepsItsReason(t *testing.T) {
	bad := artifact.Digest("sha256:1111111111111111111111111111111111111111111111111111111111111111")
	out := &report.Report{Quarantined: []report.Quarantined{
		{Release: artifact.Release{Digest: "sha256:2222222222222222222222222222222222222222222222222222222222222222"},
			Reason: "of another release"},
		{Release: artifact.Release{Digest: bad}, Reason: "file.exists of cert failed"}}}
	record := hostrecord.Record{Wanted: &hostrecord.Place{Version: "2", Digest: bad.Short()}}
	record.Quarantined = true
	if got := quarantinedFor(out, record); got != "file.exists of cert failed" {
		t.Errorf("the reason is %q", got)
	}
	record.Wanted, record.WantedBase = nil, record.Wanted
	if got := quarantinedFor(out, record); got != "file.exists of cert failed" {
		t.Errorf("the reason of base is %q", got)
	}
	record.Quarantined = false
	if got := quarantinedFor(out, record); got != "" {
		t.Errorf("a host without quarantine has the reason %q", got)
	}
}
