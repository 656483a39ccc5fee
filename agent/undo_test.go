package agent_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
)

// newNativeLab returns a lab with the native engine.
func newNativeLab(t *testing.T) *lab {
	t.Helper()
	l := newLab(t)
	l.Engine = state.Native{}
	return l
}

// states publishes a version of the service with an SLS file.
func (l *lab) states(version, sls string) {
	l.t.Helper()
	l.repo.Release("myapp", version, "testing", stateFiles(version, sls))
}

func stateFiles(version, sls string) artifacttest.Files {
	return artifacttest.Files{"version": version, "salt/config/states/top.sls": "base:\n  '*':\n    - app\n",
		"salt/config/states/app.sls": sls}
}

// snapshot describes a tree, except the agent's state and projects.
func snapshot(t *testing.T, root string) string {
	t.Helper()
	var lines []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, root)
		if name == "/var/lib/corpus" || name == "/srv" {
			return filepath.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		st := info.Sys().(*syscall.Stat_t)
		line := fmt.Sprintf("%s %s %d:%d", name, info.Mode(), st.Uid, st.Gid)
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			sum := sha256.Sum256(data)
			line += " " + hex.EncodeToString(sum[:4]) + " " + info.ModTime().String()
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			line += " -> " + target
		}
		lines = append(lines, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

func compare(t *testing.T, what, before, after string) {
	t.Helper()
	if before == after {
		return
	}
	was, is := strings.Split(before, "\n"), strings.Split(after, "\n")
	for _, line := range was {
		if !strings.Contains(after, line) {
			t.Errorf("%s: missing: %s", what, line)
		}
	}
	for _, line := range is {
		if !strings.Contains(before, line) {
			t.Errorf("%s: new:  %s", what, line)
		}
	}
}

const goodStates = `
/etc/app/app.conf:
  file.managed:
    - makedirs: True
    - contents: one
/etc/app/link:
  file.symlink:
    - target: app.conf
/etc/app/old.d/deep/er/file:
  file.managed:
    - makedirs: True
    - contents: old
/etc/app/kept:
  file.managed:
    - mode: '0640'
    - contents: kept
`

// badStates change the files of the good states in every way, and then fail.
const badStates = `
/etc/app/app.conf:
  file.managed:
    - mode: '0600'
    - contents: two
/etc/app/link:
  file.symlink:
    - target: elsewhere
    - force: True
/etc/app/old.d:
  file.absent
/etc/app/kept:
  file.directory:
    - force: True
/etc/app/kept/inside:
  file.managed:
    - contents: in the place of a file
/etc/app/new/one/two/three:
  file.managed:
    - makedirs: True
    - contents: new
/etc/app/moved:
  file.rename:
    - source: /etc/app/new/one
/etc/hosts:
  host.present:
    - name: db
    - ip: 10.0.0.1
/etc/app/again:
  file.append:
    - text: [one, two]
/etc/app/touched:
  file.touch
it fails:
  test.fail_without_changes: []
`

func TestFailedDeployUndoesItsChanges(t *testing.T) {
	l := newNativeLab(t)
	l.states("1", goodStates)
	l.expect(exit.OK)
	before := snapshot(t, l.Layout.Root)
	l.states("2", badStates)
	r := l.expect(exit.RolledBack)
	compare(t, "after the rollback", before, snapshot(t, l.Layout.Root))
	if r.Undo == nil || len(r.Undo.Restored) < 10 || len(r.Undo.Left)+len(r.Undo.Failed) > 0 {
		t.Errorf("the report has the undo %+v", r.Undo)
	}
	if r.States.Changed < 10 {
		t.Errorf("only %d states changed something, too few for this test", r.States.Changed)
	}
	noted(t, l.expect(exit.OK), "quarantined")
	compare(t, "after the next run", before, snapshot(t, l.Layout.Root))
}

func TestFailedFirstDeployUndoesItsChanges(t *testing.T) {
	l := newNativeLab(t)
	for _, dir := range []string{"etc", "srv", "var/lib", "tmp"} {
		if err := os.MkdirAll(filepath.Join(l.Layout.Root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	before := snapshot(t, l.Layout.Root)
	l.states("1", goodStates+"it fails:\n  test.fail_without_changes: []\n")
	r := l.expect(exit.Failed)
	compare(t, "after the first deploy", before, snapshot(t, l.Layout.Root))
	if r.Undo == nil || len(r.Undo.Restored) == 0 {
		t.Errorf("the report has the undo %+v", r.Undo)
	}
}

func TestRollbackConvergeIsDoneOnce(t *testing.T) {
	l := newNativeLab(t)
	l.states("1", goodStates)
	l.expect(exit.OK)
	before := snapshot(t, l.Layout.Root)
	l.states("2", strings.ReplaceAll(badStates, "it fails:\n  test.fail_without_changes: []\n", ""))
	l.expect(exit.OK)
	after := snapshot(t, l.Layout.Root)
	ctx := context.Background()
	shown, err := l.RollbackConverge(ctx, "", true)
	if err != nil || !strings.Contains(shown.Output, "+++ /etc/app/app.conf") {
		t.Errorf("the dry run ends with %v and has the output %q", err, shown.Output)
	}
	compare(t, "after the dry run", after, snapshot(t, l.Layout.Root))
	r, err := l.RollbackConverge(ctx, "", false)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, "after the rollback", before, snapshot(t, l.Layout.Root))
	l.links("1", "1", "")
	if _, err := l.RollbackConverge(ctx, r.ID, false); err != nil {
		t.Errorf("the rollback to the release that was left: %v", err)
	}
	compare(t, "after the second rollback", before, snapshot(t, l.Layout.Root))
}

func TestRollbackToRunUndoesLaterRuns(t *testing.T) {
	l := newNativeLab(t)
	l.states("1", goodStates)
	first := l.expect(exit.OK)
	conf := l.Layout.Path("/etc/app/app.conf")
	if err := os.WriteFile(conf, []byte("drifted\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if r := l.expect(exit.OK); r.States.Changed != 1 {
		t.Fatalf("%d states changed something, want 1", r.States.Changed)
	}
	if _, err := l.RollbackConverge(context.Background(), first.ID, false); err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(conf); string(data) != "drifted\n" {
		t.Errorf("after the rollback to before the second run, the file has %q", data)
	}
}

func TestRunWithoutChangesWritesNoJournal(t *testing.T) {
	l := newNativeLab(t)
	l.states("1", "fine:\n  test.succeed_without_changes: []\n")
	l.expect(exit.OK)
	l.expect(exit.OK)
	if _, err := os.Lstat(l.Layout.Journal()); err == nil {
		t.Error("a run without changes wrote a journal")
	}
}

func TestCommandsAreReportedAsNotUndone(t *testing.T) {
	l := newNativeLab(t)
	l.states("1", goodStates)
	l.expect(exit.OK)
	l.Config.UndoFileLimit = 10
	if err := os.WriteFile(l.Layout.Path("/etc/app/large"), []byte("more than ten bytes"), 0o644); err != nil {
		t.Fatal(err)
	}
	l.states("2", "/etc/app/large:\n  file.managed:\n    - contents: small\nit fails:\n  test.fail_without_changes: []\n")
	r := l.expect(exit.RolledBack)
	noted(t, r, "left: file /etc/app/large")
	noted(t, r, "larger than 10 B")
	if data, _ := os.ReadFile(l.Layout.Path("/etc/app/large")); string(data) != "small\n" {
		t.Errorf("the file without a before-image has %q, want it unchanged", data)
	}
}

// TestJournalThatWasTamperedWith checks that nothing is restored from a damaged journal.
func TestJournalThatWasTamperedWith(t *testing.T) {
	for name, spoil := range map[string]func([]byte) []byte{
		"a byte is another": func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
		"a newer version":   func(b []byte) []byte { return append([]byte("corpus-journal 2\n"), b[17:]...) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newNativeLab(t)
			l.states("1", goodStates)
			l.expect(exit.OK)
			l.states("2", strings.ReplaceAll(badStates, "it fails:\n  test.fail_without_changes: []\n", ""))
			l.expect(exit.OK)
			chapters, _ := filepath.Glob(filepath.Join(l.Layout.Journal(), "*"))
			last := chapters[len(chapters)-1]
			data, err := os.ReadFile(last)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(last, spoil(data), 0o600); err != nil {
				t.Fatal(err)
			}
			before := snapshot(t, l.Layout.Root)
			_, err = l.RollbackConverge(context.Background(), "", true)
			if exit.Code(err) != exit.RollbackFailed || !strings.Contains(diag.HintOf(err), "corpus-agent") {
				t.Errorf("the plan: exit code %d, %v (hint: %s)", exit.Code(err), err, diag.HintOf(err))
			}
			_, err = l.RollbackConverge(context.Background(), "", false)
			if exit.Code(err) != exit.RollbackFailed || !strings.Contains(err.Error(), "nothing is restored") ||
				!strings.Contains(diag.HintOf(err), "corpus-agent converge") {
				t.Errorf("exit code %d, %v (hint: %s)", exit.Code(err), err, diag.HintOf(err))
			}
			if !strings.Contains(snapshot(t, l.Layout.Root), "/etc/app/new") {
				t.Errorf("a file was restored:\n%s", before)
			}
		})
	}
}

// TestKilledDuringUndo kills a deploy whose states fail at each event, while it applies and while it restores. The next
// run completes the rollback.
func TestKilledDuringUndo(t *testing.T) {
	artifacttest.Long(t)
	repo, storeDir, trustRoot := storeOnDisk(t)
	repo.Release("myapp", "1", "testing", stateFiles("1", goodStates))
	template := t.TempDir()
	if code := spawn(t, template, storeDir, trustRoot, 0, childNative+"=1"); code != 0 {
		t.Fatalf("deploying version 1: exit code %d", code)
	}
	before := snapshot(t, template)
	repo.Release("myapp", "2", "testing", stateFiles("2", badStates))
	moments := 0
	for n := 1; n < 200; n++ {
		root := copied(t, template)
		code := spawn(t, root, storeDir, trustRoot, n, childNative+"=1")
		if code != -1 && code != exit.RolledBack {
			t.Errorf("killed at event %d: exit code %d", n, code)
		}
		if code == exit.RolledBack {
			break
		}
		moments++
		for range 3 {
			if code = spawn(t, root, storeDir, trustRoot, 0, childNative+"=1"); code == exit.OK {
				break
			}
		}
		if code != exit.OK {
			t.Errorf("killed at event %d: the later runs end with %d", n, code)
		}
		compare(t, fmt.Sprintf("killed at event %d", n), before, snapshot(t, root))
	}
	if moments < 20 {
		t.Errorf("only %d events were tried", moments)
	}
}

// TestChangesHonourShowChanges has states with show_changes: false change files that every user can read.
func TestChangesHonourShowChanges(t *testing.T) {
	l := newNativeLab(t)
	hosttest.Put(t, l.Layout.Path("/etc/hidden"), "swordfish-before\n", 0o644)
	hosttest.Put(t, l.Layout.Path("/etc/open"), "before\n", 0o644)
	l.states("1", `
/etc/hidden:
  file.managed:
    - contents: swordfish-after
    - show_changes: False
then:
  file.append:
    - name: /etc/hidden
    - text: [last]
/etc/open:
  file.managed:
    - contents: after
`)
	l.expect(exit.OK)
	_, all, err := l.Changes("")
	text := fmt.Sprint(all)
	if err != nil || strings.Contains(text, "swordfish") || !strings.Contains(text, "not shown") ||
		!strings.Contains(text, "+after") {
		t.Errorf("changes are %s, %v", text, err)
	}
}
