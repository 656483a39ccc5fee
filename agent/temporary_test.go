package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// TestTemporaryFilesOfStatesAreSwept leaves the temporary file of a state that was killed before it renamed the file,
// in a directory that no later run reads.
func TestTemporaryFilesOfStatesAreSwept(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	left := filepath.Join(l.Layout.Path("/etc/app"), ".corpus-tmp-1-0")
	l.engine.during = func(r state.Request) {
		l.engine.during = nil
		for _, err := range []error{
			os.MkdirAll(filepath.Dir(left), 0o755),
			r.Host.Files.Write("/etc/app/conf", host.NewFile{Content: strings.NewReader("x"), UID: -1, GID: -1}),
			os.WriteFile(left, nil, 0o600),
		} {
			if err != nil {
				t.Error(err)
			}
		}
		list, err := os.ReadFile(l.Layout.Temporary())
		if err != nil || string(list) != "journal "+l.Layout.Journal()+"\n" {
			t.Errorf("the list of temporary files is %q, %v; want the journal, which names %s", list, err, filepath.Dir(left))
		}
		if err := os.WriteFile(l.Layout.Temporary()+".cut", list, 0o600); err != nil {
			t.Error(err)
		}
	}
	l.expect(exit.OK)
	if _, err := os.Stat(l.Layout.Temporary()); !os.IsNotExist(err) {
		t.Errorf("after a run that ended the list still exists: %v", err)
	}
	// As after a kill: the list exists, and its last line is truncated.
	list, err := os.ReadFile(l.Layout.Temporary() + ".cut")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.Layout.Temporary(), append(list, "/et"...), 0o600); err != nil {
		t.Fatal(err)
	}
	l.expect(exit.OK)
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("the temporary file still exists: %v", err)
	}
}

// TestInterruptedRunWritesReportOfFailedRelease finds a failed release whose own run wrote no report.
func TestInterruptedRunWritesReportOfFailedRelease(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	archive := filepath.Join(l.Layout.Project("myapp").Archives(), "20260101T000000.000000")
	if err := os.MkdirAll(filepath.Join(archive, layout.FailedTree), 0o755); err != nil {
		t.Fatal(err)
	}
	r := l.expect(exit.OK)
	noted(t, r, "was interrupted")
	if is, err := (report.Archive{Dir: archive}).IsBeside(); err != nil || !is {
		t.Error("the failed release has no report")
	}
	if again := l.expect(exit.OK); strings.Contains(strings.Join(again.Notes, ""), "interrupted") {
		t.Errorf("the next run has the notes %q", again.Notes)
	}
}

// TestKilledManualRollbackIsFinished kills a rollback by hand while its states run.
func TestKilledManualRollbackIsFinished(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	l.publish("2")
	l.expect(exit.OK)
	kept := t.TempDir()
	l.engine.during = func(state.Request) {
		l.engine.during = nil
		// a copy of the disk at this time
		if err := os.CopyFS(filepath.Join(kept, "state"), os.DirFS(l.Layout.State())); err != nil {
			t.Error(err)
		}
	}
	if _, err := l.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	cut, err := os.ReadFile(filepath.Join(kept, "state", "ledger.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.Layout.Ledger(), cut, 0o644); err != nil {
		t.Fatal(err)
	}
	l.expect(exit.OK)
	l.links("1", "1", "")
	if bad := l.quarantined(); len(bad) != 1 || bad[0].Pair.Service.Version != "2" {
		t.Errorf("the quarantine is %+v, want the release that was left", bad)
	}
	l.expect(exit.OK)
	l.links("1", "1", "")
}
