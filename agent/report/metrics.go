package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Metrics writes a run's figures for the textfile collector of Prometheus's node exporter. The file is replaced
// atomically, so that a scrape never sees half of it.
type Metrics struct{ File string }

// lastSuccess is the only metric that a failed run copies from the existing file.
const lastSuccess = "corpus_agent_last_success_timestamp_seconds"

// Write replaces the file.
func (m Metrics) Write(r *Report, book *ledger.Ledger) error {
	if filepath.Ext(m.File) != ".prom" {
		err := fmt.Errorf("writing metrics: the node exporter reads no file named %s", filepath.Base(m.File))
		return diag.Notify.Hint(err, "let metrics.textfile end in .prom")
	}
	var b bytes.Buffer
	m.run(&b, r)
	m.signatures(&b, r)
	m.host(&b, book)
	if err := m.replace(b.Bytes()); err != nil {
		return fmt.Errorf("writing metrics: %w", err)
	}
	return nil
}

// replace writes the file. Its directory often belongs to the exporter, so links of other users are not followed. The
// file is readable by every user: it holds names of releases, numbers and times.
func (m Metrics) replace(content []byte) error {
	dir, name, close, err := m.directory()
	if err != nil {
		return err
	}
	defer close()
	return dir.Create(name, walk.New{Mode: 0o644, UID: -1, GID: -1}, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

func (m Metrics) directory() (dir *walk.Dir, name string, close func(), err error) {
	file, err := filepath.Abs(m.File)
	if err != nil {
		return nil, "", nil, err
	}
	root, err := walk.Open(walk.Options{Safe: true})
	if err != nil {
		return nil, "", nil, err
	}
	dir, name, err = root.Parent(file)
	if err != nil {
		return nil, "", nil, errors.Join(err, root.Close())
	}
	return dir, name, func() { _ = errors.Join(dir.Close(), root.Close()) }, nil
}

// read returns the content of the file.
func (m Metrics) read() ([]byte, error) {
	dir, name, close, err := m.directory()
	if err != nil {
		return nil, err
	}
	defer close()
	f, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 1<<20))
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
	gauge(b, "corpus_agent_last_run_duration_seconds", "How long the last run took.",
		sample{"", strconv.FormatFloat(r.Duration().Seconds(), 'f', 3, 64)})
	gauge(b, "corpus_agent_last_run_exit_code", "Exit code of the last run; 0 is good.",
		sample{labels("command", r.Command, "outcome", string(r.Outcome)), strconv.Itoa(r.Exit)})
	gauge(b, "corpus_agent_changes", "States that changed something in the last run, without those that act at every run.",
		sample{"", strconv.Itoa(r.States.Effective())})
	gauge(b, "corpus_agent_always_states", "States of the last run that act at every run.",
		sample{"", strconv.Itoa(r.States.Always)})
	gauge(b, "corpus_agent_failed_states", "States that failed in the last run.",
		sample{"", strconv.Itoa(r.States.Failed)})
	gauge(b, "corpus_agent_states", "States of the last run.", sample{"", strconv.Itoa(r.States.Total)})
}

// signatures writes when the store's signatures expire, for an alarm on the first of them.
func (m Metrics) signatures(b *bytes.Buffer, r *Report) {
	var samples []sample
	for _, e := range r.Expires {
		samples = append(samples, sample{labels("role", e.Role), seconds(e.Expires)})
	}
	if len(samples) > 0 {
		gauge(b, "corpus_agent_signature_expires_timestamp_seconds", "When a signature of the store expires.", samples...)
	}
	gauge(b, "corpus_agent_signatures_expiring",
		"Signatures of the store of which less than a third of the lifetime is left.",
		sample{"", strconv.Itoa(len(r.Expiring))})
}

func (m Metrics) host(b *bytes.Buffer, book *ledger.Ledger) {
	var releases []sample
	if book.Good != nil {
		for _, release := range book.Good.Releases() {
			l := labels("project", release.Project, "version", release.Version, "digest", string(release.Digest))
			releases = append(releases, sample{l, "1"})
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

// before reads the time of the last success from the present file. It returns "" if there is none.
func (m Metrics) before() string {
	data, err := m.read()
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

// labels formats pairs of names and values as {name="value"}.
func labels(pairs ...string) string {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	var list []string
	for i := 0; i+1 < len(pairs); i += 2 {
		list = append(list, pairs[i]+`="`+escape.Replace(pairs[i+1])+`"`)
	}
	return "{" + strings.Join(list, ",") + "}"
}

func seconds(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }

// LockMetrics writes how many runs could not take the lock. A refused run writes it while the run that holds the lock
// may write Metrics, so it is in a second file beside File.
type LockMetrics struct {
	File  string    // the file of Metrics
	Since time.Time // the first refusal; zero if there was none
	Count int
}

// Write replaces the file.
func (m LockMetrics) Write() error {
	var b bytes.Buffer
	since := "0"
	if !m.Since.IsZero() {
		since = seconds(m.Since)
	}
	gauge(&b, "corpus_agent_lock_refused_runs", "Runs that the lock refused since the last one that got it.",
		sample{"", strconv.Itoa(m.Count)})
	gauge(&b, "corpus_agent_lock_refused_since_timestamp_seconds", "When the lock refused the first of them; 0 for none.",
		sample{"", since})
	name, ok := strings.CutSuffix(m.File, ".prom")
	if !ok {
		return nil // Metrics reports the wrong name
	}
	if err := (Metrics{File: name + "_lock.prom"}).replace(b.Bytes()); err != nil {
		return fmt.Errorf("writing metrics: %w", err)
	}
	return nil
}
