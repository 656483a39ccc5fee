package report

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Metrics writes what a run was for the textfile collector of Prometheus's node exporter. The file
// is replaced as a whole, so that a scrape sees one run or the other.
type Metrics struct{ File string }

// lastSuccess is the one metric that outlives a run that fails.
const lastSuccess = "corpus_agent_last_success_timestamp_seconds"

// Write replaces the file.
func (m Metrics) Write(r *Report, book *ledger.Ledger) error {
	if filepath.Ext(m.File) != ".prom" {
		return diag.WithHint(fmt.Errorf("writing metrics: the node exporter reads no file named %s", filepath.Base(m.File)), "let metrics.textfile end in .prom")
	}
	var b bytes.Buffer
	m.run(&b, r)
	m.host(&b, book)
	if err := durable.WriteFile(m.File, b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("writing metrics: %w", err)
	}
	return nil
}

func (m Metrics) run(b *bytes.Buffer, r *Report) {
	gauge(b, "corpus_agent_last_run_timestamp_seconds", "When the last run ended.", sample{"", seconds(r.Ended)})
	success := seconds(r.Ended)
	if r.Exit != 0 {
		success = m.before()
	}
	if success != "" {
		gauge(b, lastSuccess, "When the last run that succeeded ended.", sample{"", success})
	}
	gauge(b, "corpus_agent_last_run_duration_seconds", "How long the last run took.", sample{"", strconv.FormatFloat(r.Duration().Seconds(), 'f', 3, 64)})
	gauge(b, "corpus_agent_last_run_exit_code", "Exit code of the last run; 0 is good.", sample{labels("command", r.Command, "outcome", string(r.Outcome)), strconv.Itoa(r.Exit)})
	gauge(b, "corpus_agent_changes", "States that changed something in the last run.", sample{"", strconv.Itoa(r.States.Changed)})
	gauge(b, "corpus_agent_failed_states", "States that failed in the last run.", sample{"", strconv.Itoa(r.States.Failed)})
	gauge(b, "corpus_agent_states", "States of the last run.", sample{"", strconv.Itoa(r.States.Total)})
}

func (m Metrics) host(b *bytes.Buffer, book *ledger.Ledger) {
	var releases []sample
	if book.Good != nil {
		for _, release := range book.Good.Releases() {
			releases = append(releases, sample{labels("project", release.Project, "version", release.Version, "digest", string(release.Digest)), "1"})
		}
	}
	if len(releases) > 0 {
		gauge(b, "corpus_agent_release_info", "What is deployed.", releases...)
	}
	held := "0"
	if book.Hold != nil {
		held = "1"
	}
	gauge(b, "corpus_agent_held", "Whether new releases are kept away.", sample{"", held})
	gauge(b, "corpus_agent_quarantined", "Releases that are not deployed again.", sample{"", strconv.Itoa(len(book.Bad))})
}

// before reads when the last success was out of the file that is there.
func (m Metrics) before() string {
	data, err := os.ReadFile(m.File)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		if v, ok := strings.CutPrefix(line, lastSuccess+" "); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

type sample struct{ labels, value string }

func gauge(b *bytes.Buffer, name, help string, samples ...sample) {
	fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name)
	for _, s := range samples {
		fmt.Fprintf(b, "%s%s %s\n", name, s.labels, s.value)
	}
}

// labels writes names and values in turn as {name="value"}.
func labels(pairs ...string) string {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	var list []string
	for i := 0; i+1 < len(pairs); i += 2 {
		list = append(list, pairs[i]+`="`+escape.Replace(pairs[i+1])+`"`)
	}
	return "{" + strings.Join(list, ",") + "}"
}

func seconds(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }

// LockMetrics writes how the lock refuses runs. A run that was refused writes them while another one may write
// Metrics, so they are in a file of their own beside File.
type LockMetrics struct {
	File  string    // of Metrics
	Since time.Time // the first refusal; zero for none
	Count int
}

// Write replaces the file.
func (m LockMetrics) Write() error {
	var b bytes.Buffer
	since := "0"
	if !m.Since.IsZero() {
		since = seconds(m.Since)
	}
	gauge(&b, "corpus_agent_lock_refused_runs", "Runs that the lock refused since the last one that got it.", sample{"", strconv.Itoa(m.Count)})
	gauge(&b, "corpus_agent_lock_refused_since_timestamp_seconds", "When the lock refused the first of them; 0 for none.", sample{"", since})
	name, ok := strings.CutSuffix(m.File, ".prom")
	if !ok {
		return nil // Metrics reports that
	}
	if err := durable.WriteFile(name+"_lock.prom", b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("writing metrics: %w", err)
	}
	return nil
}
