package python_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/python"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// files is a module whose functions use files as modules do.
const files = `
import os, shutil
import salt.utils.files as f, salt.utils.atomicfile as a, salt.utils.hashutils as h

def write(path, mode="w"):
    with f.fopen(path, mode) as x:
        x.write("written")

def give(path):
    with f.fpopen(path, "w", uid=65534, gid=65534, mode=0o666) as x:
        x.write("written")

def lock(path):
    with f.flopen(path, "a") as x:
        x.write("written")

def locked(path):
    import fcntl
    f.LOCK_TRIES = 3
    with open(path, "a") as x:
        fcntl.flock(x, fcntl.LOCK_EX)
        lock(path)

def read(path):
    with f.fopen(path) as x:
        return x.read()

def atomic(path):
    with a.atomic_open(path) as x:
        x.write("written")

def copy(source, path):
    f.copyfile(source, path)

def tree(source, path):
    f.recursive_copy(source, path)

def rename(source, path):
    f.rename(source, path)

def remove(path):
    f.remove(path)

def rm_rf(path):
    f.rm_rf(path)

def temporary(path):
    return f.mkstemp(dir=path)

def hashed(path):
    return h.get_hash(path)

def text(path):
    return f.is_text(path)
`

// nobody is the number of the user nobody.
const nobody = 65534

// home is a directory with the files of root in etc and tree, and the directory home of another user.
type home struct {
	t        *testing.T
	top      string
	w        *python.Worker
	original []string
}

func newHome(t *testing.T) *home {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("this test needs root: it makes files of other users")
	}
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := &home{t: t, top: top, w: start(t, &fakeSession{texts: map[string]string{"modules/files": files}})}
	h.must(os.MkdirAll(top+"/etc/sub", 0o755))
	h.must(os.Mkdir(top+"/home", 0o755))
	h.must(os.WriteFile(top+"/etc/secret", []byte("secret"), 0o600))
	h.must(os.WriteFile(top+"/etc/sub/kept", []byte("secret"), 0o600))
	h.must(os.MkdirAll(top+"/tree/sub", 0o755))
	h.must(os.WriteFile(top+"/tree/secret", []byte("written"), 0o644))
	h.must(os.WriteFile(top+"/tree/sub/kept", []byte("written"), 0o644))
	h.theirs("home")
	h.original = h.state("etc")
	return h
}

func (h *home) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// theirs gives files and directories to the user nobody.
func (h *home) theirs(names ...string) {
	h.t.Helper()
	for _, name := range names {
		h.must(os.Lchown(filepath.Join(h.top, name), nobody, nobody))
	}
}

// link makes a link of the user nobody.
func (h *home) link(target, name string) {
	h.t.Helper()
	h.must(os.Symlink(target, filepath.Join(h.top, name)))
	h.theirs(name)
}

// state describes the files below a directory.
func (h *home) state(dir string) (all []string) {
	h.t.Helper()
	h.must(filepath.WalkDir(filepath.Join(h.top, dir), func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := ""
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			text = string(data)
		}
		st := info.Sys().(*syscall.Stat_t)
		all = append(all, fmt.Sprintln(strings.TrimPrefix(p, h.top), info.Mode(), st.Uid, text))
		return nil
	}))
	return all
}

// call calls a function of the module with paths below the top; other arguments are marked with "=".
func (h *home) call(name string, args ...string) (any, error) {
	list := []any{}
	for _, arg := range args {
		if word, is := strings.CutPrefix(arg, "="); is {
			list = append(list, word)
			continue
		}
		list = append(list, filepath.Join(h.top, arg))
	}
	return call(h.w, h.t.Context(), "files."+name, list...)
}

func isOfHost(err error) bool {
	var fault diag.HostFault
	return errors.As(err, &fault)
}

// TestRootFollowsNoLinksOfOtherUsersInPython uses files of the package salt by paths on which another user has put
// links to files and directories of root.
func TestRootFollowsNoLinksOfOtherUsersInPython(t *testing.T) {
	h := newHome(t)
	h.link(h.top+"/etc/secret", "home/link")
	h.link("../etc", "home/dir")
	h.link(h.top+"/etc/new", "home/missing")
	h.must(os.Mkdir(h.top+"/home/tree", 0o755))
	h.link("../../etc/secret", "home/tree/secret")
	h.link("../../etc/sub", "home/tree/sub")
	h.theirs("home/tree")
	h.must(os.Link(h.top+"/etc/secret", h.top+"/home/hard"))
	for _, c := range [][]string{
		{"write", "home/link"}, {"write", "home/link", "=a"}, {"write", "home/link", "=r+"},
		{"write", "home/dir/new"},
		{"write", "home/missing"}, {"write", "home/hard"}, {"give", "home/link"}, {"give", "home/dir/secret"},
		{"give", "home/hard"}, {"lock", "home/link"}, {"read", "home/link"}, {"hashed", "home/link"},
		{"text", "home/dir/secret"}, {"atomic", "home/dir/secret"}, {"atomic", "home/link"},
		{"copy", "tree/secret", "home/dir/secret"}, {"copy", "tree/secret", "home/link"},
		{"copy", "home/link", "tree/new"}, {"tree", "tree", "home/tree"}, {"tree", "tree", "home/dir"},
		{"tree", "home/tree", "home/copy"}, {"rename", "tree/secret", "home/dir/secret"},
		{"rename", "home/dir/secret", "home/mine"}, {"remove", "home/dir/secret"}, {"rm_rf", "home/dir/sub"},
		{"temporary", "home/dir"},
	} {
		_, err := h.call(c[0], c[1:]...)
		if err == nil || !strings.Contains(err.Error(), "is controlled by user 65534 and leads to a file or directory of "+
			"user 0 (hint: look at ") || !strings.Contains(err.Error(), "[C072]") {
			t.Errorf("%s gives %v", c, err)
		}
		if !isOfHost(err) || !isOfHost(python.Failure(fmt.Sprint("it failed: ", err))) {
			t.Errorf("%s: %v is no fault of the host", c, err)
		}
		if got := h.state("etc"); fmt.Sprint(got) != fmt.Sprint(h.original) {
			t.Fatalf("%s changes files of root: %s, want %s", c, got, h.original)
		}
	}
	if h.w.Started() != 1 {
		t.Errorf("%d processes were started", h.w.Started())
	}
}

// TestRootUsesLinksThatAreSafeInPython uses paths with links of root, and links of a user to the user's own files.
func TestRootUsesLinksThatAreSafeInPython(t *testing.T) {
	h := newHome(t)
	h.must(os.Symlink("etc", h.top+"/ours"))
	h.must(os.WriteFile(h.top+"/home/own", []byte("own"), 0o640))
	h.link("own", "home/link")
	h.link(h.top+"/home", "home/self")
	h.link(h.top+"/home/later", "home/missing")
	h.theirs("home/own")
	for _, c := range [][]string{
		{"write", "ours/secret"}, {"read", "home/self/link"}, {"write", "home/self/link", "=a"}, {"write", "home/missing"},
		{"write", "=/dev/null"}, {"read", "=/dev/null"}, {"read", "=/proc/self/status"}, {"atomic", "home/own"},
		{"write", "=/dev/fd/2"},
		{"copy", "tree/secret", "home/self/own"}, {"tree", "tree", "home/self/new"}, {"rename", "home/later", "home/now"},
		{"remove", "home/now"}, {"rm_rf", "home/self"}, {"rm_rf", "home/new"}, {"rm_rf", "ours/sub"}, {"read", "ours/secret"},
		{"temporary", "ours"},
	} {
		if _, err := h.call(c[0], c[1:]...); err != nil {
			t.Errorf("%s: %v", c, err)
		}
	}
	got := strings.Join(h.state("home"), "")
	if want := "/home drwxr-xr-x 65534 \n/home/link Lrwxrwxrwx 65534 \n/home/missing Lrwxrwxrwx 65534 \n" +
		"/home/own -rw-r----- 65534 written\n"; got != want {
		t.Errorf("the home has %s, want %s", got, want)
	}
	etc := strings.Join(h.state("etc"), "")
	if !strings.Contains(etc, "/etc/secret -rw------- 0 written\n") || strings.Contains(etc, "sub") {
		t.Errorf("the directory of root has %s", etc)
	}
}

// TestPipesOfOtherUsersAreRefusedInPython opens a pipe and a locked file of another user, which would never return.
func TestPipesOfOtherUsersAreRefusedInPython(t *testing.T) {
	h := newHome(t)
	h.must(syscall.Mkfifo(h.top+"/home/pipe", 0o644))
	h.must(syscall.Mkfifo(h.top+"/tree/pipe", 0o644))
	h.theirs("home/pipe", "tree/pipe")
	for _, c := range [][]string{{"read", "home/pipe"}, {"write", "home/pipe"}, {"lock", "home/pipe"},
		{"text", "home/pipe"}, {"hashed", "home/pipe"}, {"tree", "home", "tree/new"}, {"read", "tree/pipe"}} {
		_, err := h.call(c[0], c[1:]...)
		var raised *python.Raised
		if !errors.As(err, &raised) || !isOfHost(err) ||
			!strings.Contains(raised.Message, "refused, since it is a pipe of user 65534") {
			t.Errorf("%s gives %v", c, err)
		}
	}
	_, err := h.call("locked", "tree/secret")
	if !isOfHost(err) || !strings.Contains(err.Error(), "another process has locked it") {
		t.Errorf("a locked file gives %v", err)
	}
}

// TestTemporaryFilesAreNotUsedByNameInPython has a user exchange each temporary file for a link while it is written.
func TestTemporaryFilesAreNotUsedByNameInPython(t *testing.T) {
	h := newHome(t)
	w := start(t, &fakeSession{texts: map[string]string{"modules/swaps": `
import os
import salt.utils.files as f, salt.utils.atomicfile as a
from salt.utils import _walk

def swap(home, secret):
    for name in os.listdir(home):
        if name.startswith((".___atomic_write", f.TEMPFILE_PREFIX)):
            os.unlink(home + "/" + name)
            os.symlink(secret, home + "/" + name)
            os.chown(home + "/" + name, 65534, 65534, follow_symlinks=False)

def atomic(home, secret):
    x = a.atomic_open(home + "/conf")
    x.write("written")
    swap(home, secret)
    x.close()

def copy(home, secret):
    def during(*args):
        swap(home, secret)
        return plain(*args)
    plain, _walk.copy = _walk.copy, during
    f.copyfile("/etc/passwd", home + "/conf")
`}})
	for _, name := range []string{"atomic", "copy"} {
		h.must(errors.Join(os.RemoveAll(h.top+"/home/conf"), os.WriteFile(h.top+"/home/conf", nil, 0o666),
			os.Chmod(h.top+"/home/conf", 0o666)))
		h.theirs("home/conf")
		if _, err := call(w, t.Context(), "swaps."+name, h.top+"/home", h.top+"/etc/secret"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := h.state("etc"); fmt.Sprint(got) != fmt.Sprint(h.original) {
			t.Errorf("%s changes files of root: %s, want %s", name, got, h.original)
		}
	}
}

// TestFilesOfThePackageSalt uses files as an unprivileged user does, and as root in directories of root.
func TestFilesOfThePackageSalt(t *testing.T) {
	w := start(t, &fakeSession{texts: map[string]string{"modules/files": files}})
	top := t.TempDir()
	if err := os.WriteFile(top+"/b", nil, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(top, top+"/l"); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][]any{{"write", top + "/a"}, {"write", top + "/a", "a"}, {"atomic", top + "/b"},
		{"copy", top + "/a", top + "/l/b"}, {"rename", top + "/a", top + "/c"}, {"temporary", top},
		{"remove", top + "/l/none"}, {"hashed", top + "/b"}, {"rm_rf", top + "/l"}} {
		if _, err := call(w, t.Context(), "files."+c[0].(string), c[1:]...); err != nil {
			t.Errorf("%s: %v", c, err)
		}
	}
	got, err := call(w, t.Context(), "files.read", top+"/b")
	info, statErr := os.Stat(top + "/b")
	if err != nil || statErr != nil || got != "writtenwritten" || info.Mode().Perm() != 0o640 {
		t.Errorf("the copy has %s, mode %v: %v, %v", value.Repr(got), info.Mode(), err, statErr)
	}
	if _, err := call(w, t.Context(), "files.read", top+"/none"); err == nil ||
		!strings.Contains(err.Error(), "FileNotFoundError: [Errno 2] No such file or directory: '"+top+
			"/none' (/tree/modules/files.py:") {
		t.Errorf("a missing file gives %v", err)
	}
}
