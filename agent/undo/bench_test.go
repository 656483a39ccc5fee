package undo_test

import (
	"context"
	"os"
	osexec "os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/journal"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/undo"
	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/statetest/benchtree"
)

// bench is a host for the tree of 159 states, with a journal.
type bench struct {
	testing.TB
	template string
	journal  journal.Journal
}

func newBench(tb testing.TB) *bench {
	return &bench{tb, benchtree.Host(tb, 40), journal.Journal{Limit: 1 << 30, FileLimit: 16 << 20}}
}

// fresh returns the host as it is before the first apply, with an empty journal.
func (b *bench) fresh() string {
	b.Helper()
	dir := b.TempDir()
	if out, err := osexec.Command("cp", "-a", b.template+"/.", dir).CombinedOutput(); err != nil {
		b.Fatalf("copying: %v: %s", err, out)
	}
	b.journal.Dir = filepath.Join(dir, "var/lib/corpus/journal")
	if err := os.MkdirAll(b.journal.Dir, 0o700); err != nil { // an agent has one since its first run
		b.Fatal(err)
	}
	if out, err := osexec.Command("sync", "-f", dir).CombinedOutput(); err != nil {
		b.Fatalf("syncing: %v: %s", err, out)
	}
	return dir
}

// settling is the observer that a run has.
type settling struct{ recorder *journal.Recorder }

func (s settling) StepStarted(step *compile.Step) { s.recorder.Step(step.Function() + " " + step.ID()) }
func (s settling) StepDone(*exec.Result)          { _ = s.recorder.Settle() }

// apply converges the host, and returns the time from the start of the first state to the end of the last.
func (b *bench) apply(root string, keep bool) time.Duration {
	b.Helper()
	options := host.Options{Root: root, Chroot: true}
	recorder := b.journal.Record(journal.Run{ID: "1", Pair: ledger.Key{Bytes: "a"}, Now: time.Now, Note: b.Logf,
		Skip: []string{"/var/lib/corpus"}})
	var observer exec.Observer
	if keep {
		options.Recorder, observer = recorder, settling{recorder}
	}
	h, err := machine.New(options)
	if err != nil {
		b.Fatal(err)
	}
	recorder.Bind(h)
	s, program := benchtree.Program(b, h)
	started := time.Now()
	for _, r := range s.Run(b.Context(), program, observer).All() {
		if r.Outcome.Value() != true {
			b.Fatalf("%s: %s", r.Step.Tag(), r.Comment)
		}
	}
	if err := recorder.Close(); err != nil {
		b.Fatal(err)
	}
	return time.Since(started)
}

// restore undoes apply.
func (b *bench) restore(root string) (undo.Summary, time.Duration) {
	b.Helper()
	h, err := machine.New(host.Options{Root: root, Chroot: true})
	if err != nil {
		b.Fatal(err)
	}
	started := time.Now()
	chapters, err := b.journal.Chapters()
	if err != nil {
		b.Fatal(err)
	}
	records, _ := undo.Select(chapters, undo.Scope{From: ledger.Key{Bytes: "a"}})
	plan, err := undo.NewPlan(context.Background(), h, chapters, records)
	if err != nil {
		b.Fatal(err)
	}
	did, err := undo.Restore(context.Background(), h, b.journal, "2", plan)
	if err != nil || len(did.Failed) > 0 {
		b.Fatalf("%v %+v", err, did.Failed)
	}
	return did, time.Since(started)
}

// BenchmarkNothingToDo159 applies the tree of 159 states without changes, alternately with and without a journal: the
// times should be equal. The cost of the journal for changes is measured with a whole deploy (make bench-undo).
func BenchmarkNothingToDo159(b *testing.B) {
	w := newBench(b)
	root := w.fresh()
	w.apply(root, true)
	var with, without time.Duration
	for b.Loop() {
		without += w.apply(root, false)
		with += w.apply(root, true)
	}
	b.ReportMetric(100*(float64(with)/float64(without)-1), "slower-%")
}

// BenchmarkRestore159 undoes the apply, which should take at most a second.
func BenchmarkRestore159(b *testing.B) {
	w := newBench(b)
	var took time.Duration
	restored := 0
	for b.Loop() {
		root := w.fresh()
		w.apply(root, true)
		did, t := w.restore(root)
		took, restored = took+t, len(did.Restored)
	}
	b.ReportMetric(float64(took.Microseconds())/1000/float64(b.N), "restore-ms")
	b.ReportMetric(float64(restored), "restored")
}
