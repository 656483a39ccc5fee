package agent_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/hook"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// failingHook returns a program that fails and needs no other file.
func failingHook(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.go"),
		[]byte("package main\n\nimport \"os\"\n\nfunc main() { os.Stderr.WriteString(\"no migration\\n\"); os.Exit(3) }\n"),
		0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "build", "-ldflags", "-s -w", "-o", filepath.Join(dir, "hook"),
		filepath.Join(dir, "main.go"))
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	data, err := os.ReadFile(filepath.Join(dir, "hook"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestHookThatFailsQuarantinesItsRelease checks hooks before and after the release, with each kind of new base.
func TestHookThatFailsQuarantinesItsRelease(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("this test needs root: hooks run in another root directory")
	}
	program := failingHook(t) // replaces the shell of the root
	for _, stage := range []string{"pre-release", "post-release"} {
		t.Run(stage, func(t *testing.T) {
			l := newLab(t)
			l.Chroot = true
			if err := os.MkdirAll(l.Layout.Path("/bin"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(l.Layout.Path("/bin/sh"), []byte(program), 0o755); err != nil {
				t.Fatal(err)
			}
			l.publishBase("1")
			l.app("1")
			l.expect(exit.OK)
			l.publishBase("2")
			l.app("2", artifacttest.Files{"hooks/" + stage + ".d/10-migrate": "#!/bin/sh\n"})
			r := l.expect(exit.RolledBack)
			l.pairRuns("1", "1")
			if got := l.inQuarantine(); !slices.Equal(got, []string{"myapp 2"}) ||
				r.Fault.String() != "myapp 2 was quarantined" {
				t.Errorf("the quarantine has %v, and the report has %q", got, r.Fault)
			}
			if h := r.Hooks[stage]; len(h) != 1 || h[0].Release != "myapp 2" || !strings.Contains(h[0].Error, "exit status 3") ||
				h[0].Output != "no migration" {
				t.Errorf("hooks are %+v", r.Hooks)
			}
			if w, err := l.Why(); err != nil || !strings.Contains(w.Failed, "exit status 3") ||
				!strings.HasSuffix(w.Failed, "\nno migration") {
				t.Errorf("why has the failure %q, %v", w.Failed, err)
			}
			var output bytes.Buffer
			report.Replay(r, &report.Lines{Out: &output})
			if !strings.Contains(output.String(), "FAILED   "+stage+" hook 10-migrate of myapp 2: exit status 3") {
				t.Errorf("the output is %s", &output)
			}
			l.publishBase("3")
			l.expect(exit.OK)
			l.pairRuns("3", "1")
		})
	}
}

// TestReplayPrintsSameOutputAsRun checks the order, and the lines of units and hooks.
func TestReplayPrintsSameOutputAsRun(t *testing.T) {
	l, _ := runningUnits(t, "1", "app.service")
	var live, again bytes.Buffer
	l.Sinks = []report.Sink{&report.Lines{Out: &live, Verbose: true}}
	l.app("2.exits")
	r := l.expect(exit.RolledBack)
	report.Replay(r, &report.Lines{Out: &again, Verbose: true})
	replay := strings.ReplaceAll(again.String(), "stage    ", "")
	at := 0
	for _, want := range []string{"converge", "unit     app.service restarted", "FAILED   health unit app.service",
		"note     rolling back to myapp 1", "roll back", "unit     app.service started",
		"healthy  unit app.service runs the release: its program"} {
		next := strings.Index(replay[at:], want)
		if next < 0 {
			t.Fatalf("%q does not follow in\n%s\nthe run printed\n%s", want, &again, &live)
		}
		at += next
	}
	if !strings.Contains(replay, "top.sls decided which states run\n") {
		t.Errorf("the replay lacks the top file:\n%s", replay)
	}
	again = *bytes.NewBufferString(regexp.MustCompile("(?m)^note .* decided which states run\n").ReplaceAllString(
		again.String(), ""))
	live = *bytes.NewBufferString(regexp.MustCompile("(?m)^fetched .*\n").ReplaceAllString(live.String(), ""))
	for i, line := range strings.Split(live.String(), "\n") {
		if lines := strings.Split(again.String(), "\n"); i >= len(lines) ||
			!strings.HasPrefix(line, strings.TrimSpace(lines[i])) {
			t.Errorf("line %d was %q; the run printed\n%s\nand its replay\n%s", i, line, &live, &again)
			break
		}
	}

	old := *r // of an agent that did not save the order
	old.Order, old.Hooks = nil, map[string][]hook.Result{"pre-release": {{Name: "10-say"}}}
	again.Reset()
	report.Replay(&old, &report.Lines{Out: &again})
	if !strings.Contains(again.String(), "hook     pre-release 10-say (") ||
		!strings.Contains(again.String(), "unit     app.service restarted") {
		t.Errorf("without an order: %s", &again)
	}
}

// TestOrdinaryUsersGetAHint checks commands of a user who may not read the agent's state.
func TestOrdinaryUsersGetAHint(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("this test needs root: it runs as another user")
	}
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	for dir := l.Layout.Root; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = syscall.Setfsuid(bob)
	defer func() { _ = syscall.Setfsuid(0) }()
	_, status := l.Status()
	_, last := l.Report("")
	_, history := l.History()
	_, why := l.Why()
	for name, err := range map[string]error{"status": status, "report": last, "history": history, "why": why} {
		if exit.Code(err) != exit.Usage || !strings.Contains(diag.HintOf(err), "run it as the user that deployed below") ||
			!strings.Contains(err.Error(), "only root may read reports") {
			t.Errorf("%s: exit code %d, %v, hint %q", name, exit.Code(err), err, diag.HintOf(err))
		}
	}
}

// TestServiceTopFileThatReplacesBaseIsNoted checks that the note appears once.
func TestServiceTopFileThatReplacesBaseIsNoted(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.Engine = nil
	state := "/etc/NAME:\n  file.managed:\n    - makedirs: True\n    - contents: one\n"
	l.repo.Release("base", "1", "production",
		artifacttest.Files{"version": "1", "states/top.sls": "base:\n  '*':\n    - common\n",
			"states/common.sls": strings.Replace(state, "NAME", "common", 1)})
	l.repo.Release("myapp", "1", "testing",
		artifacttest.Files{"version": "1", "salt/config/states/top.sls": "base:\n  '*':\n    - app\n",
			"salt/config/states/app.sls": strings.Replace(state, "NAME", "app", 1)})
	text := "no state of base 1 ran: myapp 1 has a top.sls of its own"
	noted(t, l.expect(exit.OK), text)
	if r := l.expect(exit.OK); strings.Contains(strings.Join(r.Notes, "\n"), text) {
		t.Errorf("a later run repeats the note: %q", r.Notes)
	}
	l.repo.Release("myapp", "2", "testing",
		artifacttest.Files{"version": "2", "salt/config/states/top.sls": "base:\n  '*':\n    - common\n    - app\n",
			"salt/config/states/app.sls": strings.Replace(state, "NAME", "app", 1)})
	if r := l.expect(exit.OK); len(r.Notes) != 0 {
		t.Errorf("a top file that names base's states: %q", r.Notes)
	}
}

// TestDryRollbackOutputIsConditional checks that the output does not report a converge.
func TestDryRollbackOutputIsConditional(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	l.publish("2")
	l.expect(exit.OK)
	var output bytes.Buffer
	l.Sinks = []report.Sink{&report.Lines{Out: &output, Always: true}}
	if _, err := l.RollbackConverge(context.Background(), "", true); err != nil {
		t.Fatal(err)
	}
	if text := output.String(); strings.Contains(text, "converged:") ||
		!strings.Contains(text, "dry run, nothing was done, would go back to: myapp 1;") {
		t.Errorf("the output is %s", text)
	}
	l.links("2", "2", "1")
}

// TestInterruptedRunNamesDeployedRelease checks that the note names the current release, not the earlier one, after the
// channels have moved.
func TestInterruptedRunNamesDeployedRelease(t *testing.T) {
	l, _ := runningUnits(t, "1", "app.service")
	l.app("2")
	l.Sinks = []report.Sink{&panicking{at: "health"}}
	l.killed()
	l.app("3")
	r := l.expect(exit.OK)
	noted(t, r, "was interrupted while it deployed myapp 2")
	if strings.Contains(strings.Join(r.Notes, "\n"), "is resumed") {
		t.Errorf("version 3 is deployed, and the notes are %q", r.Notes)
	}
	l.app("4")
	l.Sinks = []report.Sink{&panicking{at: "health"}}
	l.killed()
	noted(t, l.expect(exit.OK), "the deploy of myapp 4 that run ")
}

// TestReleaseOfWhichNoStateRuns checks that a deploy and a dry run report such a release.
func TestReleaseOfWhichNoStateRuns(t *testing.T) {
	t.Parallel()
	const app = "app:\n  test.nop: []\n"
	templates := "templates:\n- {source: app.conf.j2, target: /etc/app.conf}\n"
	for name, c := range map[string]struct {
		base, files artifacttest.Files
		want        string
	}{
		"no target matches": {files: artifacttest.Files{"salt/config/states/top.sls": "base:\n  'nothing*': [app]\n",
			"salt/config/states/app.sls": app},
			want: "no state ran: top.sls gives this host none; "},
		"only a template": {files: artifacttest.Files{"salt/config/states/top.sls": "base:\n  'nothing*': [app]\n",
			"salt/config/states/app.sls": app, "corpus.yaml": templates, "app.conf.j2": "x\n"},
			want: "no state ran: top.sls gives this host none; "},
		"not in base's top file": {
			base:  artifacttest.Files{"version": "1", "states/top.sls": "base:\n  '*': [common]\n", "states/common.sls": app},
			files: artifacttest.Files{"salt/config/states/app.sls": app},
			want:  "no state of myapp 1 ran: top.sls names none of its SLS files for this host; "},
		"in base's top file": {
			base:  artifacttest.Files{"version": "1", "states/top.sls": "base:\n  '*': [app]\n"},
			files: artifacttest.Files{"salt/config/states/app.sls": app}},
		"the service's top file names base's states": {
			base:  artifacttest.Files{"version": "1", "states/common.sls": app},
			files: artifacttest.Files{"salt/config/states/top.sls": "base:\n  '*': [common]\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.Engine = nil
			c.files["version"] = "1"
			if c.base != nil {
				l.repo.Release("base", "1", "production", c.base)
			}
			l.repo.Release("myapp", "1", "testing", c.files)
			dry, err := l.Deploy(context.Background(), l.firstDeploy(), true)
			if err != nil {
				t.Fatal(err)
			}
			for _, notes := range [][]string{dry.Notes, l.expect(exit.OK).Notes} {
				text := regexp.MustCompile(`/srv/\S*/`).ReplaceAllString(strings.Join(notes, "\n"), "")
				if c.want == "" && strings.Contains(text, "ran:") || !strings.Contains(text, c.want) {
					t.Errorf("the notes are %q, want %q", text, c.want)
				}
			}
			if again := strings.Join(l.expect(exit.OK).Notes, "\n"); strings.Contains(again, "ran:") {
				t.Errorf("a run without a deploy has the notes %q", again)
			}
		})
	}
}
