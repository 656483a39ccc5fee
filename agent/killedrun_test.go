package agent_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/lock"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/site"
)

// TestStatusNamesARunThatWasKilled checks that status has its command, time and step until another run holds the lock.
func TestStatusNamesARunThatWasKilled(t *testing.T) {
	repo, storeDir, trustRoot := storeOnDisk(t)
	root := t.TempDir()
	repo.Release("myapp", "1", "testing", stateFiles("1", goodStates))
	if code := spawn(t, root, storeDir, trustRoot, 0, childNative+"=1"); code != 0 {
		t.Fatalf("deploying version 1: exit code %d", code)
	}
	a := agent.New(site.Site{Layout: layout.At(root), Config: settings(t)})
	if w, err := a.Why(); err != nil || w.Cut != nil {
		t.Fatalf("before the cut: %v, %v", w.Cut, err)
	}
	repo.Release("myapp", "2", "testing", stateFiles("2", threeFiles))
	old(t, root, "a", "b", "c")
	if code := spawn(t, root, storeDir, trustRoot, 0, childNative+"=1", childStep+"=/etc/app/b"); code != -1 {
		t.Fatalf("exit code %d, want the code of a killed process", code)
	}
	w, err := a.Why()
	if err != nil || w.Cut == nil {
		t.Fatalf("after the cut: %+v, %v", w.Cut, err)
	}
	if c := w.Cut; c.Command != "deploy" || c.Began == nil || c.Run == "" || c.Step != "file.managed /etc/app/b" ||
		c.Pair.Service.Version != "2" || !c.TakesUp {
		t.Errorf("the cut is %+v", c)
	}
	for _, want := range []string{"deploy run " + w.Cut.Run, "which began 2",
		"interrupted in file.managed /etc/app/b, deploying myapp 2", "resumes it"} {
		if !strings.Contains(w.Cut.String(), want) {
			t.Errorf("%q is not in %q", want, w.Cut)
		}
	}
	held, err := lock.Acquire(a.Layout.Lock(), "converge")
	if err != nil {
		t.Fatal(err)
	}
	if w, err := a.Why(); err != nil || w.Cut != nil || w.CutShort != nil || w.Running == nil {
		t.Errorf("while a run holds the lock: cut %v, running %v, %v", w.Cut, w.Running, err)
	}
	if err := held.Release(); err != nil {
		t.Fatal(err)
	}
	if code := spawn(t, root, storeDir, trustRoot, 0, childNative+"=1"); code != 0 {
		t.Fatalf("the next run: exit code %d", code)
	}
	if w, err := a.Why(); err != nil || w.Cut != nil {
		t.Errorf("after the next run: %v, %v", w.Cut, err)
	}
}

// TestStatusNamesARunThatWasKilledBeforeItsDeploy checks that status reads the killed run from the file of the lock.
func TestStatusNamesARunThatWasKilledBeforeItsDeploy(t *testing.T) {
	_, storeDir, trustRoot := storeOnDisk(t)
	root := t.TempDir()
	if code := spawn(t, root, storeDir, trustRoot, 1); code != -1 {
		t.Fatalf("exit code %d, want the code of a killed process", code)
	}
	a := agent.New(site.Site{Layout: layout.At(root), Config: settings(t)})
	s, err := a.Status()
	if err != nil || s.Cut == nil || s.Cut.Command != "deploy" || s.Cut.Began == nil || s.Cut.TakesUp {
		t.Fatalf("the cut is %+v, %v", s.Cut, err)
	}
	if text := s.Cut.String(); !strings.Contains(text, "starts from the beginning") {
		t.Errorf("the text is %q", text)
	}
}

// TestStatusSaysThatAKilledRollbackHasToBeRunAgain kills a rollback by hand before it moved the links: later runs keep
// the deployed release. If it had ended except for its report, there is nothing to run again.
func TestStatusSaysThatAKilledRollbackHasToBeRunAgain(t *testing.T) {
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	l.publish("2")
	l.expect(exit.OK)
	cut := func(began time.Time) string {
		t.Helper()
		holder := fmt.Sprintf(`{"pid":%d,"command":"rollback","since":%q}`, 1<<30, began.UTC().Format(time.RFC3339))
		must(t, os.WriteFile(l.Layout.Lock(), []byte(holder), 0o600))
		w, err := l.Why()
		if err != nil || w.Cut == nil {
			t.Fatalf("the cut is %+v, %v", w.Cut, err)
		}
		return w.Cut.String()
	}
	const again = "; nothing was rolled back, and the next run does not do it: run corpus-agent rollback again"
	if text := cut(l.Time().Add(time.Hour)); !strings.HasSuffix(text, again) {
		t.Errorf("the text is %q", text)
	}
	noted(t, l.expect(exit.OK), "interrupted before it moved the links: nothing was rolled back; to do it: "+
		"corpus-agent rollback")
	l.links("2", "2", "1")
	if s := mustStatus(t, l); s.Cut != nil {
		t.Errorf("after the next run, the cut is %+v", s.Cut)
	}
	if r := l.expect(exit.OK); strings.Contains(fmt.Sprint(r.Notes), "nothing was rolled back") {
		t.Errorf("the run after it has the notes %q", r.Notes)
	}
	must(t, os.RemoveAll(l.Layout.Reports()))
	if text := cut(l.Time().Add(-time.Hour)); strings.Contains(text, "nothing was rolled back") {
		t.Errorf("after the releases moved, the text is %q", text)
	}
	if r := l.expect(exit.OK); strings.Contains(fmt.Sprint(r.Notes), "nothing was rolled back") {
		t.Errorf("after the releases moved, the run has the notes %q", r.Notes)
	}
}

// TestShutdownDuringGuardNamesItsState checks that status names the state whose guard runs, and not the state before
// it, which made the last change.
func TestShutdownDuringGuardNamesItsState(t *testing.T) {
	l := newShellLab(t)
	l.Config.StopTimeout = 100 * time.Millisecond
	l.states("1", goodStates)
	l.expect(exit.OK)
	l.states("2", "/etc/app/app.conf:\n  file.managed:\n    - contents: two\n"+
		"guarded:\n  cmd.run:\n    - name: 'true'\n    - shell: /bin/sh\n    - onlyif: touch /asked; while :; do :; done\n"+
		"    - require: [file: /etc/app/app.conf]\n")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	l.Stopping = func(context.Context) bool { return ctx.Err() != nil }
	go func() {
		for deadline := time.Now().Add(soon); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			if _, err := os.Stat(l.Layout.Path("/asked")); err == nil {
				break
			}
		}
		cancel()
	}()
	r, err := l.Deploy(ctx, agent.Given{}, false)
	if exit.Code(err) != exit.Interrupted {
		t.Fatalf("exit code %d: %v", exit.Code(err), err)
	}
	if last := r.Steps[len(r.Steps)-1]; last.ID != "guarded" || last.Result != report.StepFailed ||
		!strings.Contains(last.Comment, "while its onlyif ran") {
		t.Errorf("the last step is %+v", last)
	}
	l.Stopping = nil
	if s, err := l.Status(); err != nil || s.Cut == nil || s.Cut.Step != "cmd.run guarded" {
		t.Errorf("the cut is %+v, %v", s.Cut, err)
	}
}

// TestInterruptedRunNamesRunningStates reads a host after a power failure, while states ran after one that changed
// something.
func TestInterruptedRunNamesRunningStates(t *testing.T) {
	hanging := func(file string) string { return "touch " + file + "; while :; do :; done" }
	for name, c := range map[string]struct{ sls, want string }{
		"a guard": {"guarded:\n  cmd.run:\n    - name: 'true'\n    - shell: /bin/sh\n    - onlyif:\n      - 'true'\n" +
			"      - '" + hanging("/a") + "'\n", "cmd.run guarded"},
		"after a guard": {
			"asked:\n  cmd.run:\n    - name: 'true'\n    - shell: /bin/sh\n    - unless: 'true'\n" +
				"two:\n  cmd.run:\n    - name: '" + hanging("/a") + "'\n    - shell: /bin/sh\n    - require: [cmd: asked]\n",
			"cmd.run two"},
		"parallel states": {
			"one:\n  cmd.run:\n    - name: '" + hanging("/a") + "'\n    - shell: /bin/sh\n    - parallel: True\n    - " +
				"require: [file: /etc/app/app.conf]\ntwo:\n  cmd.run:\n    - name: '" + hanging("/b") +
				"'\n    - shell: /bin/sh\n    - parallel: True\n    - require: [file: /etc/app/app.conf]\n",
			"cmd.run one or cmd.run two"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newShellLab(t)
			l.Config.StopTimeout = 100 * time.Millisecond
			l.states("1", goodStates)
			l.expect(exit.OK)
			l.states("2", "/etc/app/app.conf:\n  file.managed:\n    - contents: two\n"+c.sls)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			left := make(chan string, 1)
			go func() {
				defer cancel()
				for deadline := time.Now().Add(soon); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
					_, a := os.Stat(l.Layout.Path("/a"))
					_, b := os.Stat(l.Layout.Path("/b"))
					if a == nil && (b == nil || !strings.Contains(c.sls, "touch /b")) {
						break
					}
				}
				left <- copied(t, l.Layout.Root)
			}()
			_, _ = l.Deploy(ctx, agent.Given{}, false)
			root := <-left
			must(t, os.WriteFile(filepath.Join(root, "var/lib/corpus/lock"), nil, 0o600)) // this process holds it
			s, err := agent.New(site.Site{Layout: layout.At(root), Config: settings(t)}).Status()
			if err != nil || s.Cut == nil || s.Cut.Step != c.want {
				t.Errorf("the cut is %+v, %v, want %s", s.Cut, err, c.want)
			}
		})
	}
}
