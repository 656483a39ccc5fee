package session_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
)

// TestRootRunsNoProgramOnPartsOfAUser checks that root does not run pip in directories in which a user owns files that
// pip executes or reads.
func TestRootRunsNoProgramOnPartsOfAUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("files of several users require root")
	}
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	ran := filepath.Join(dir, "ran")
	for name, text := range map[string]string{"venv/pyvenv.cfg": "", "venv/lib/python/site/x.py": "", "app/data/x": "",
		"app/setup.py": "", "app/requirements.txt": "x\n"} {
		hosttest.Put(t, filepath.Join(dir, name), text, 0o644)
	}
	hosttest.Put(t, filepath.Join(dir, "venv/bin/pip3"), "#!/bin/sh\ncase \"$*\" in *list*) echo '[]';; *) id -u >"+ran+
		";; esac\n", 0o755)
	if err := os.Chmod(filepath.Join(dir, "venv/bin/pip3"), 0o755); err != nil {
		t.Fatal(err)
	}
	apply := func(more string) *exec.Result {
		_ = os.Remove(ran)
		sls := "t: {pip.installed: [{name: x}, {bin_env: DIR/venv/bin/pip3}, {cwd: DIR/app}, {requirements: " +
			"DIR/app/requirements.txt}" + more + "]}"
		hosttest.Put(t, filepath.Join(dir, "states/t.sls"), strings.ReplaceAll(sls, "DIR", dir), 0o644)
		h, err := machine.New(host.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return runStates(t, h, filepath.Join(dir, "states"), false)[0]
	}
	uid := func() string {
		text, _ := os.ReadFile(ran) // missing if no program ran
		return strings.TrimSpace(string(text))
	}
	for part, refused := range map[string]bool{
		"": false, "app/data": false, "app/data/x": false,
		"venv/bin/pip3": true, "venv/lib/python/site/x.py": true, "venv/pyvenv.cfg": true, "app/setup.py": true,
		"app/requirements.txt": true,
	} {
		at := filepath.Join(dir, part)
		if part != "" {
			if err := os.Lchown(at, nobody, nobody); err != nil {
				t.Fatal(err)
			}
		}
		for _, more := range []string{"", ", {user: root}"} {
			r := apply(more)
			if refused && (r.Outcome != exec.Failed || uid() != "" ||
				!strings.Contains(r.Comment, at+" is controlled by user nobody") || !strings.Contains(r.Hint, "chown")) {
				t.Errorf("%s%s: %v, ran as %q: %s (hint: %s)", part, more, r.Outcome, uid(), r.Comment, r.Hint)
			}
			if !refused && uid() != "0" {
				t.Errorf("%s%s: the program ran as %q: %s", part, more, uid(), r.Comment)
			}
		}
		if r := apply(", {follow_unsafe: true}"); uid() != "0" {
			t.Errorf("%s: with follow_unsafe the program ran as %q: %s", part, uid(), r.Comment)
		}
		if err := os.Lchown(at, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
}
