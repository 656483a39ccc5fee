package agent_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/hook"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// interrupter interrupts a run at one of its stages, as SIGTERM does.
type interrupter struct {
	stage string
	stop  context.CancelFunc
}

func (i *interrupter) Stage(name, _ string) {
	if name == i.stage {
		i.stop()
	}
}
func (*interrupter) Begin(*report.Report)          {}
func (*interrupter) Fetching(string, int64, int64) {}
func (*interrupter) Step(report.Step)              {}
func (*interrupter) Hook(string, hook.Result)      {}
func (*interrupter) Note(string)                   {}
func (*interrupter) End(*report.Report)            {}

// cutStates are the states of version 2.
const cutStates = `
/etc/app/app.conf:
  file.managed:
    - contents: two
/etc/app/new/one:
  file.managed:
    - makedirs: True
    - contents: new
/etc/app/last:
  file.managed:
    - contents: last
`

// interruptedRollback returns a host whose rollback from version 2 to version 1 was interrupted before the agent
// restored any file.
func interruptedRollback(t *testing.T) *lab {
	t.Helper()
	return interruptedRollbackFrom(t, "1", "2")
}

// interruptedRollbackFrom is interruptedRollback for a host that had these versions, of which the last is rolled back.
func interruptedRollbackFrom(t *testing.T, versions ...string) *lab {
	t.Helper()
	l := newNativeLab(t)
	for i, version := range versions {
		states := goodStates
		if i == len(versions)-1 {
			states = cutStates
		}
		l.states(version, states)
		l.expect(exit.OK)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	l.Sinks = []report.Sink{&interrupter{"undo", stop}}
	if _, err := l.RollbackConverge(ctx, "", false); exit.Code(err) != exit.Interrupted {
		t.Fatalf("the rollback was not interrupted: %v", err)
	}
	l.Sinks = nil
	return l
}

func (l *lab) lastChapter() string {
	l.t.Helper()
	chapters, err := filepath.Glob(filepath.Join(l.Layout.Journal(), "*.journal"))
	if err != nil || len(chapters) == 0 {
		l.t.Fatalf("there is no journal: %v", err)
	}
	return chapters[len(chapters)-1]
}

func (l *lab) spoil(file string, how func([]byte) []byte) {
	l.t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(file, how(data), 0o600); err != nil {
		l.t.Fatal(err)
	}
}

func TestInterruptedRollbackIsFinished(t *testing.T) {
	l := interruptedRollback(t)
	noted(t, l.expect(exit.OK), "that is finished first")
	if _, err := os.Stat(l.Layout.Path("/etc/app/new")); err == nil {
		t.Error("the file of version 2 still exists")
	}
	l.links("1", "1", "")
}

// TestRollbackInterruptedDuringItsConverge checks that a rollback is interrupted, not failed, if a signal ends it while
// the earlier release converges, and that the next run leaves the host on that release.
func TestRollbackInterruptedDuringItsConverge(t *testing.T) {
	l := newNativeLab(t)
	l.states("1", goodStates)
	l.expect(exit.OK)
	l.states("2", cutStates)
	l.expect(exit.OK)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	l.Sinks = []report.Sink{&interrupter{"converge", stop}}
	if _, err := l.RollbackConverge(ctx, "", false); exit.Code(err) != exit.Interrupted {
		t.Errorf("exit code %d (%v), want %d", exit.Code(err), err, exit.Interrupted)
	}
	l.Sinks = nil
	l.expect(exit.OK)
	if _, err := os.Stat(l.Layout.Path("/etc/app/new")); err == nil {
		t.Error("the file of version 2 still exists")
	}
	l.links("1", "1", "")
}

// TestRollbackWithADamagedJournal checks that the agent restores nothing from a damaged journal, reports it once with
// exit code 8, and converges the good pair: the next run of the timer needs no person.
func TestRollbackWithADamagedJournal(t *testing.T) {
	for name, spoil := range map[string]func([]byte) []byte{
		"a byte is another": func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
		"a newer version":   func(b []byte) []byte { return append([]byte("corpus-journal 2\n"), b[17:]...) },
		"truncated":         func(b []byte) []byte { return b[5:] },
	} {
		t.Run(name, func(t *testing.T) {
			l := interruptedRollback(t)
			l.spoil(l.lastChapter(), spoil)
			_, err := l.deploy()
			if exit.Code(err) != exit.RollbackFailed || !strings.Contains(err.Error(), "nothing is restored from it") {
				t.Fatalf("exit code %d, %v", exit.Code(err), err)
			}
			if hint := diag.HintOf(err); strings.Count(hint, "corpus-agent converge") > 1 ||
				!strings.Contains(hint, "corpus-agent") {
				t.Errorf("the hint is %q", hint)
			}
			if _, err := os.Stat(l.Layout.Path("/etc/app/new")); err != nil {
				t.Errorf("a file was restored: %v", err)
			}
			if data, err := os.ReadFile(l.Layout.Path("/etc/app/app.conf")); string(data) != "one\n" {
				t.Errorf("version 1 did not converge: %q, %v", data, err)
			}
			l.links("1", "1", "")
			noted(t, l.expect(exit.OK), "not all that it changed was undone")
		})
	}
}

// TestHintOfADamagedJournalWorks runs the commands of the hint. After them a rollback can use the journal.
func TestHintOfADamagedJournalWorks(t *testing.T) {
	l := interruptedRollback(t)
	l.spoil(l.lastChapter(), func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
	chapter := l.lastChapter()
	_, err := l.deploy()
	move := regexp.MustCompile(`mv (\S+) /root/`).FindStringSubmatch(diag.HintOf(err))
	if move == nil || move[1] != chapter {
		t.Fatalf("the hint names no file to move: %q", diag.HintOf(err))
	}
	if err := os.Rename(move[1], filepath.Join(t.TempDir(), "set-aside")); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Converge(context.Background(), false); err != nil {
		t.Errorf("converge: %v", err)
	}
	if _, _, err := l.Changes(""); err != nil {
		t.Errorf("changes: %v", err)
	}
	before := snapshot(t, l.Layout.Root)
	l.states("3", "/etc/app/app.conf:\n  file.managed:\n    - contents: three\n")
	l.expect(exit.OK)
	if _, err := l.RollbackConverge(context.Background(), "", false); err != nil {
		t.Errorf("a later rollback: %v", err)
	}
	compare(t, "after a later rollback", before, snapshot(t, l.Layout.Root))
}

// TestFailedRollbackIsRetriedThreeTimes checks that the agent retries a restore that failed three times. Then the good
// pair converges, and later runs do not retry it. A rollback by hand still does.
func TestFailedRollbackIsRetriedThreeTimes(t *testing.T) {
	l := interruptedRollback(t)
	stubborn := l.Layout.Path("/etc/app/last")
	if out, err := exec.Command("chattr", "+i", stubborn).CombinedOutput(); err != nil {
		t.Skipf("this test needs a file that root cannot remove: %v: %s", err, out)
	}
	free := func() { _ = exec.Command("chattr", "-i", stubborn).Run() } // the file may be gone
	defer free()
	for n := range 3 {
		_, err := l.deploy()
		if exit.Code(err) != exit.RollbackFailed ||
			!strings.Contains(err.Error(), "not everything could be undone: file /etc/app/last") ||
			!strings.Contains(diag.HintOf(err), "corpus-agent rollback --converge") {
			t.Fatalf("run %d: exit code %d, %v (hint: %s)", n+1, exit.Code(err), err, diag.HintOf(err))
		}
	}
	noted(t, l.expect(exit.OK), "not all that it changed was undone")
	free()
	if _, err := l.RollbackConverge(context.Background(), "", false); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(stubborn); err == nil {
		t.Error("the rollback by hand did not remove the file")
	}
	l.links("1", "1", "")
}
