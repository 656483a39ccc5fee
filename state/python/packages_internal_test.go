package python

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/state/host/dialog"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// noting keeps what a worker logs, and has a module that imports what it is called with.
type noting struct{ notes []string }

const moduleThatImports = `
import importlib

def f(name):
    return importlib.import_module(name).__name__

def path(name):
    import importlib.util
    spec = importlib.util.spec_from_file_location("by_path", name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

def run(name):
    import runpy
    runpy.run_path(name)

def child(queue, name):
    try:
        queue.put(f(name))
    except ImportError as e:
        queue.put(str(e))

def start(name, method):
    import multiprocessing
    context = multiprocessing.get_context(method)
    queue = context.SimpleQueue()
    p = context.Process(target=child, args=(queue, name))
    p.start()
    p.join()
    return queue.get() if p.exitcode == 0 else p.exitcode
`

func (*noting) World() *value.Map { return value.NewMap() }

func (n *noting) Ask(_ context.Context, q *value.Map) (any, error) {
	switch q.Value("ask") {
	case "source":
		return value.NewMap("path", "/tree/modules/m.py", "text", moduleThatImports), nil
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
		packages + "/b.pth":       top + "/bad\n",
		packages + "/c.pth":       "../../../relative\n" + top + "/sticky/ours\n" + top + "/sticky\n",
		top + "/relative/near.py": "", top + "/sticky/ours/stuck.py": "", top + "/sticky/loose.py": "",
		packages + "/sitecustomize.py": code, top + "/more/named.py": "",
		top + "/home/evil.py": code, top + "/bad/evil.py": code, packages + "/deep/__init__.py": "",
		packages + "/deep/part.py": code, packages + "/listed/__init__.py": code,
		packages + "/unknown/__init__.py": code, packages + "/staff/__init__.py": code,
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
	if err := os.Chmod(top+"/sticky", os.ModeSticky|0o777); err != nil { // like /tmp
		t.Fatal(err)
	}
	withGroup(t, packages+"/unknown", 424242)
	withGroup(t, packages+"/staff", 50) // has no members, but is not below /usr/local
	imports := map[string]string{"good": "", "named": "", "deep": "", "near": "", "stuck": "",
		"evil": "No module named", "loose": "No module named",
		"theirs":    "user 65534 can change " + packages + "/theirs.py",
		"deep.part": "user 65534 can change " + packages + "/deep/part.py",
		"unknown":   "group 424242 can change " + packages + "/unknown",
		"staff":     "group 50 can change " + packages + "/staff"}
	if withList(t, packages+"/listed") {
		imports["listed"] = "a user of its access control list can change " + packages + "/listed"
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
	for name, fails := range imports {
		_, err := w.Do(t.Context(), "call", value.NewMap("kind", "modules", "name", "m.f", "args",
			value.NewList(name), "kwargs", value.NewMap()))
		if fails == "" && err != nil || fails != "" && (err == nil || !strings.Contains(err.Error(), fails)) {
			t.Errorf("importing %s: %v, want %q", name, err, fails)
		}
	}
	checkCodeByPath(t, w, packages)
	checkChildren(t, w, packages)
	if _, err := os.Stat(ran); err == nil {
		t.Error("code of a .pth file, of sitecustomize, or of another user was run")
	}
	notes := strings.Join(asks.notes, "\n")
	for _, want := range []string{packages + "/b.pth is not used: user 65534",
		"packages in " + top + "/home are not used", "packages in " + top + "/sticky are not used: each user"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes are %q, want %q", notes, want)
		}
	}
}

// ask calls a function of moduleThatImports.
func ask(t *testing.T, w *Worker, name string, args ...any) (any, error) {
	t.Helper()
	return w.Do(t.Context(), "call", value.NewMap("kind", "modules", "name", "m."+name, "args", value.NewList(args...),
		"kwargs", value.NewMap()))
}

// checkCodeByPath executes files by their paths.
func checkCodeByPath(t *testing.T, w *Worker, packages string) {
	t.Helper()
	library := packages + "/library.so"
	if err := errors.Join(os.WriteFile(library, nil, 0o755), os.Chown(library, 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][]string{{"path", "theirs.py"}, {"run", "theirs.py"}, {"path", "library.so"}} {
		_, err := ask(t, w, c[0], packages+"/"+c[1])
		if err == nil || !strings.Contains(err.Error(), "user 65534 can change "+packages+"/"+c[1]) {
			t.Errorf("%s gives %v", c, err)
		}
		if _, err := ask(t, w, c[0], packages+"/good.py"); err != nil {
			t.Errorf("%s of a file of root: %v", c[0], err)
		}
	}
}

// checkChildren imports a file of another user in processes that multiprocessing starts.
func checkChildren(t *testing.T, w *Worker, packages string) {
	t.Helper()
	for _, method := range []string{"fork", "spawn", "forkserver"} {
		v, err := ask(t, w, "start", "theirs", method)
		if want := "user 65534 can change " + packages + "/theirs.py"; err != nil || !strings.Contains(value.Str(v), want) {
			t.Errorf("%s: %v, %v, want %q", method, v, err, want)
		}
	}
}

// withGroup lets a group write to a directory of root.
func withGroup(t *testing.T, dir string, group int) {
	t.Helper()
	if err := errors.Join(os.Chown(dir, 0, group), os.Chmod(dir, 0o775)); err != nil {
		t.Fatal(err)
	}
}

// withList lets a user write to a directory of root by an access control list. It returns false if the filesystem has
// no such lists.
func withList(t *testing.T, dir string) bool {
	t.Helper()
	list := []byte{2, 0, 0, 0}
	for _, e := range [][3]uint32{{1, 7, ^uint32(0)}, {2, 7, 65534}, {4, 5, ^uint32(0)}, {16, 7, ^uint32(0)},
		{32, 5, ^uint32(0)}} { // the owner, a user, the group, the mask, and others
		list = append(list, byte(e[0]), 0, byte(e[1]), 0)
		list = binary.LittleEndian.AppendUint32(list, e[2])
	}
	err := unix.Setxattr(dir, "system.posix_acl_access", list, 0)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EPERM) {
		t.Logf("without the case of an access control list: %v", err)
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	return true
}

// TestUnreadableDirectoriesOfPackages starts the worker of a user who cannot list a directory of packages.
func TestUnreadableDirectoriesOfPackages(t *testing.T) {
	top := t.TempDir()
	if err := os.Mkdir(top+"/site-packages", 0o300); err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadDir(top + "/site-packages"); err == nil {
		t.Skip("this user can read each directory")
	}
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		t.Skip("this host has no /usr/bin/python3 to run modules with")
	}
	listed := "import sys, os, site\nsite.getsitepackages = lambda p: [" + value.Repr(top+"/site-packages") + "]\n"
	w := New(Options{Asks: &noting{}, Opts: value.NewMap("id", "here"),
		Modules: value.NewMap("modules", value.NewMap("m", "/tree/modules/m.py"))})
	options := pythonOptions()
	options[len(options)-1] = listed + options[len(options)-1]
	cmd := exec.Command("/usr/bin/python3", options...)
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
	if v, err := w.Do(t.Context(), "ping", value.NewMap("value", 1)); err != nil || v != 1 {
		t.Errorf("the worker answers %v, %v", v, err)
	}
}
