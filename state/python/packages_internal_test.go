package python

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host/dialog"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// noting keeps what a worker logs, and has a module that imports what it is called with.
type noting struct{ notes []string }

func (*noting) World() *value.Map { return value.NewMap() }

func (n *noting) Ask(_ context.Context, q *value.Map) (any, error) {
	switch q.Value("ask") {
	case "source":
		return value.NewMap("path", "/tree/modules/m.py", "text", "import importlib\ndef f(name):\n"+
			"    return importlib.import_module(name).__name__\n"), nil
	case "log":
		n.notes = append(n.notes, value.Str(q.Value("message")))
		return nil, nil
	}
	return nil, fmt.Errorf("unexpected request %s", value.Repr(q))
}

// TestPackagesOfOtherUsersAreNotImported starts the worker with a virtual environment whose packages partly belong to
// another user, and whose .pth files have code.
func TestPackagesOfOtherUsersAreNotImported(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this test needs root: it makes files of other users")
	}
	version, err := exec.Command("/usr/bin/python3", "-I", "-c",
		"import sys;print('python3.%d'%sys.version_info[1])").Output()
	if err != nil {
		t.Skip("this host has no /usr/bin/python3 to run modules with")
	}
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	packages := filepath.Join(top, "lib", strings.TrimSpace(string(version)), "site-packages")
	ran := filepath.Join(top, "ran")
	code := "open(" + value.Repr(ran) + ", 'w').close()\n"
	for file, text := range map[string]string{
		top + "/pyvenv.cfg": "home = /usr/bin\n", top + "/bin/python3": "", packages + "/good.py": "",
		packages + "/theirs.py": code, packages + "/a.pth": "import os; " + code + top + "/more\n" + top + "/home\n",
		packages + "/b.pth": top + "/bad\n", packages + "/sitecustomize.py": code, top + "/more/named.py": "",
		top + "/home/evil.py": code, top + "/bad/evil.py": code, packages + "/deep/__init__.py": "",
		packages + "/deep/part.py": code,
	} {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(top + "/bin/python3"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/usr/bin/python3", top+"/bin/python3"); err != nil {
		t.Fatal(err)
	}
	for _, theirs := range []string{packages + "/theirs.py", packages + "/b.pth", top + "/home",
		packages + "/deep/part.py"} {
		if err := os.Chown(theirs, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	asks := &noting{}
	w := New(Options{Asks: asks, Opts: value.NewMap("id", "here"),
		Modules: value.NewMap("modules", value.NewMap("m", "/tree/modules/m.py"))})
	cmd := exec.Command(top+"/bin/python3", pythonOptions()...)
	cmd.Env = environment()
	talk, err := dialog.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(talk.Kill)
	w.sent = map[string][]byte{}
	if err := w.introduce(t.Context(), talk, startTime); err != nil {
		t.Fatal(err)
	}
	w.talk = talk
	for name, fails := range map[string]string{"good": "", "named": "", "deep": "", "evil": "No module named",
		"theirs":    "user 65534 can change " + packages + "/theirs.py",
		"deep.part": "user 65534 can change " + packages + "/deep/part.py"} {
		_, err := w.Do(t.Context(), "call", value.NewMap("kind", "modules", "name", "m.f", "args",
			value.NewList(name), "kwargs", value.NewMap()))
		if fails == "" && err != nil || fails != "" && (err == nil || !strings.Contains(err.Error(), fails)) {
			t.Errorf("importing %s: %v, want %q", name, err, fails)
		}
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("code of a .pth file, of sitecustomize, or of another user was run")
	}
	notes := strings.Join(asks.notes, "\n")
	for _, want := range []string{packages + "/b.pth is not used: user 65534",
		"packages in " + top + "/home are not used"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes are %q, want %q", notes, want)
		}
	}
}
