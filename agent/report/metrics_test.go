package report_test

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact"
)

func TestMetricsKeepLastSuccess(t *testing.T) {
	m := report.Metrics{File: filepath.Join(t.TempDir(), "corpus.prom")}
	digest := artifact.NewDigest(sha256.Sum256(nil))
	book := &ledger.Ledger{Good: &ledger.Pair{Service: artifact.Release{Project: "myapp", Version: `1"x`, Digest: digest}}}
	good := &report.Report{
		Command: "deploy", Outcome: report.Converged, Started: time.Unix(90, 0), Ended: time.Unix(100, 0),
		States: report.Counts{Total: 5, Changed: 3, Always: 1},
	}
	if err := m.Write(good, book); err != nil {
		t.Fatal(err)
	}
	expect(t, m.File, "corpus_agent_last_success_timestamp_seconds 100\n",
		"corpus_agent_last_run_duration_seconds 10.000\n",
		"corpus_agent_changes 2\n", "corpus_agent_always_states 1\n", "corpus_agent_held 0\n",
		`corpus_agent_release_info{project="myapp",version="1\"x",digest="`+string(digest)+`"} 1`)
	bad := &report.Report{
		Command: "deploy", Outcome: report.Failed, Exit: 3, Started: time.Unix(190, 0), Ended: time.Unix(200, 0),
		States: report.Counts{Total: 5, Failed: 1},
	}
	book.Hold = &ledger.Hold{}
	if err := m.Write(bad, book); err != nil {
		t.Fatal(err)
	}
	expect(t, m.File, "corpus_agent_last_success_timestamp_seconds 100\n", "corpus_agent_last_run_timestamp_seconds 200\n",
		`corpus_agent_last_run_exit_code{command="deploy",outcome="failed"} 3`, "corpus_agent_failed_states 1\n",
		"corpus_agent_held 1\n")
	err := report.Metrics{File: "/x/corpus.txt"}.Write(good, book)
	if err == nil || !strings.Contains(err.Error(), "corpus.txt") {
		t.Errorf("a name that no exporter reads: %v", err)
	}
}

func expect(t *testing.T, file string, lines ...string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range lines {
		if !strings.Contains(string(data), want) {
			t.Errorf("%q is not in\n%s", want, data)
		}
	}
}

func TestReplaySendsTheRecordedEvents(t *testing.T) {
	var b strings.Builder
	report.Replay(&report.Report{
		Command: "deploy", Outcome: report.Failed, Exit: 3, Error: "x", Notes: []string{"by the way"},
		States: report.Counts{Total: 2, Failed: 1},
		Steps: []report.Step{{
			ID: "Ensure x", Function: "file.managed", Name: "/x", SLS: "web", Result: report.StepFailed, Comment: "no room",
		}},
	}, &report.Lines{Out: &b})
	for _, want := range []string{
		"FAILED   file.managed /x (Ensure x in web)", "no room", "by the way", "failed: 2 states, 1 failed",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
}
