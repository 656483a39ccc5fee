package agent_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
)

// newShellLab returns a lab whose states can run a shell, in a root directory of their own.
func newShellLab(t *testing.T) *lab {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("this test needs root: it changes roots")
	}
	l := newNativeLab(t)
	l.Chroot = true
	hosttest.Tree(t, l.Layout.Root)
	for _, name := range []string{"sh", "touch"} {
		file, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		real, err := filepath.EvalSymlinks(file)
		if err != nil {
			t.Fatal(err)
		}
		hosttest.Install(t, l.Layout.Root, real)
		if target := filepath.Join(l.Layout.Root, "/bin/", name); target != filepath.Join(l.Layout.Root, real) {
			if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(real, target); err != nil {
				t.Fatal(err)
			}
		}
	}
	return l
}

// TestReportListsCommandsOfFailedDeploy checks that the report of an automatic rollback lists each state that ran a
// program. Commands of guards and templates only read, and are not listed.
func TestReportListsCommandsOfFailedDeploy(t *testing.T) {
	l := newShellLab(t)
	l.states("1", goodStates)
	l.expect(exit.OK)
	l.states("2", `
{% set looked = salt['cmd.run']('touch /looked') %}
mark:
  cmd.run:
    - name: touch /marked
    - unless: touch /etc/app/none/guarded
call:
  module.run:
    - cmd.run:
      - cmd: touch /called
/etc/app/app.conf:
  file.managed:
    - contents: two
it fails:
  test.fail_without_changes: []
`)
	r := l.expect(exit.RolledBack)
	if r.Undo == nil {
		t.Fatalf("the report lacks the rollback: %s", r.Error)
	}
	var left []string
	for _, one := range r.Undo.Left {
		left = append(left, one.String())
		noted(t, r, "left: "+one.String())
	}
	got := strings.Join(left, "\n")
	for _, want := range []string{"(cmd.run mark): what a command does cannot be undone",
		"(module.run call): what a command does cannot be undone"} {
		if !strings.Contains(got, want) {
			t.Errorf("the report lists\n%s\nwant %q in it", got, want)
		}
	}
	if len(left) != 2 || strings.Contains(got, "/marked") {
		t.Errorf("the report lists\n%s\nwant two commands, without their arguments", got)
	}
	if _, err := os.Stat(l.Layout.Path("/called")); err != nil {
		t.Errorf("the state did not run: %v", err)
	}
	if data, err := os.ReadFile(l.Layout.Path("/etc/app/app.conf")); string(data) != "one\n" {
		t.Errorf("the file was not restored: %q, %v", data, err)
	}
}

// TestReportNamesListenerThatRanACommand checks that the report names the listener, and not the last state before it.
func TestReportNamesListenerThatRanACommand(t *testing.T) {
	l := newShellLab(t)
	l.states("1", goodStates)
	l.expect(exit.OK)
	l.states("2", `
/etc/app/app.conf:
  file.managed:
    - contents: two
    - listen_in:
      - cmd: reload
reload:
  cmd.wait:
    - name: touch /reloaded
last:
  test.fail_without_changes: []
`)
	r := l.expect(exit.RolledBack)
	if r.Undo == nil || len(r.Undo.Left) != 1 || r.Undo.Left[0].Step != "cmd.mod_watch listener_reload" {
		t.Errorf("the report lists %+v, want the listener", r.Undo)
	}
}

// decrypting is the native engine with a decrypted value.
type decrypting struct{ secret string }

func (d decrypting) Compile(ctx context.Context, r state.Request) (state.Program, error) {
	r.Redactor.Add(d.secret)
	return state.Native{}.Compile(ctx, r)
}

// TestSecretsAreInNoReport searches for a secret in all output of a deploy and of its rollback. States have the secret
// in their IDs, names, comments and files.
func TestSecretsAreInNoReport(t *testing.T) {
	l := newShellLab(t)
	l.states("1", goodStates)
	l.expect(exit.OK)
	const secret = "correct-horse-battery"
	hosttest.Put(t, l.Layout.Path("/srv/projects/myapp/pillar/init.sls"), "token: "+secret+"\n", 0o600)
	l.Engine = decrypting{secret}
	l.states("2", `
touch /x --token={{ pillar['token'] }} || touch /x:
  cmd.run: []
a file:
  file.managed:
    - name: /etc/app/token
    - contents: {{ pillar['token'] }}
it needs {{ pillar['token'] }}:
  test.fail_with_changes: []
not run {{ pillar['token'] }}:
  cmd.run:
    - name: touch /{{ pillar['token'] }}
    - require:
      - test: it needs {{ pillar['token'] }}
`)
	r, err := l.deploy()
	if exit.Code(err) != exit.RolledBack {
		t.Fatalf("exit code %d, %v", exit.Code(err), err)
	}
	_, changes, changesErr := l.Changes(r.ID)
	back, backErr := l.RollbackConverge(context.Background(), r.ID, true)
	if changesErr != nil {
		t.Fatal(changesErr)
	}
	for what, v := range map[string]any{"the report": r, "the error": err.Error(), "changes": changes,
		"the rollback": back, "its error": backErr} {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), secret) {
			t.Errorf("%s has the secret: %s", what, text)
		}
	}
	if !strings.Contains(strings.Join(r.Notes, "\n"), "(cmd.run touch /x --token=<secret>") {
		t.Errorf("the notes are %q", r.Notes)
	}
}
