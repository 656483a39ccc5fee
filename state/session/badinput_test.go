package session_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/statetest/benchtree"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// converge runs an SLS file on a root and returns the results by ID.
func converge(t *testing.T, root, sls string) map[string]*exec.Result {
	t.Helper()
	tree := t.TempDir()
	hosttest.Put(t, filepath.Join(tree, "top.sls"), "base:\n  '*':\n    - t\n", 0o644)
	hosttest.Put(t, filepath.Join(tree, "t.sls"), sls, 0o644)
	h, err := machine.New(host.Options{Root: root, Chroot: os.Geteuid() == 0})
	if err != nil {
		t.Fatal(err)
	}
	trees, err := machine.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// The tree of states is on the machine, and the files that they change are below the root.
	s := families.New(session.Settings{
		Host: h.WithFiles(both{h.Files, trees.Files, tree}), ID: "t",
		Grains: value.NewMap("id", "t", "os_family", "Debian", "kernel", "Linux"),
		States: []roots.Env{{Name: "base", Dirs: []string{tree}}},
	})
	ctx := context.Background()
	matches, err := s.Top(ctx)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Program(ctx, matches)
	if err != nil {
		t.Fatal(err)
	}
	results := map[string]*exec.Result{}
	for _, r := range s.Run(ctx, p, nil).All() {
		results[r.Step.ID()] = r
	}
	return results
}

// both has the files of a root and, at its path on the machine, the tree of states.
type both struct {
	host.Files
	machine host.Files
	tree    string
}

func (b both) of(path string) host.Files {
	if strings.HasPrefix(path, b.tree) {
		return b.machine
	}
	return b.Files
}

func (b both) Stat(path string) (host.Info, error)   { return b.of(path).Stat(path) }
func (b both) Lstat(path string) (host.Info, error)  { return b.of(path).Lstat(path) }
func (b both) ReadFile(path string) ([]byte, error)  { return b.of(path).ReadFile(path) }
func (b both) ReadDir(path string) ([]string, error) { return b.of(path).ReadDir(path) }
func (b both) Resolve(path string) (string, error)   { return b.of(path).Resolve(path) }

// expectFailure checks that a state failed with a cause and a hint.
func expectFailure(t *testing.T, r *exec.Result, cause, hint string) {
	t.Helper()
	if r == nil {
		t.Fatal("there is no result")
	}
	if r.Outcome != exec.Failed || !strings.Contains(r.Comment, cause) || !strings.Contains(r.Hint, hint) {
		t.Errorf("%s: outcome %v, comment %q, hint %q; want a failure with %q and the hint %q", r.Step.Tag(),
			r.Outcome.Value(), r.Comment, r.Hint, cause, hint)
	}
	if r.Changes.Len() > 0 {
		t.Errorf("%s: a failure reports changes: %s", r.Step.Tag(), value.Repr(r.Changes))
	}
}

// expectFiles checks that a directory has exactly the files in want, by name, with their contents.
func expectFiles(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, known := want[e.Name()]
		if !known {
			t.Errorf("%s was left behind", e.Name())
			continue
		}
		if data, err := os.ReadFile(filepath.Join(dir, e.Name())); err != nil || string(data) != text {
			t.Errorf("%s has %d bytes, %v; want %q", e.Name(), len(data), err, text)
		}
	}
	if len(entries) != len(want) {
		t.Errorf("there are %d files, want %d", len(entries), len(want))
	}
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("file systems and attributes require root")
	}
}

func TestUnknownOwner(t *testing.T) {
	needRoot(t)
	root := t.TempDir()
	hosttest.Tree(t, root)
	hosttest.Put(t, filepath.Join(root, "srv/a"), "old", 0o644)
	results := converge(t, root, "/srv/a:\n  file.managed:\n    - contents: new\n    - user: alcie\n"+
		"/srv/b:\n  file.directory:\n    - group: nogroup-at-all\nafter:\n  test.nop: []\n")
	expectFailure(t, results["/srv/a"], "alcie", "")
	expectFailure(t, results["/srv/b"], "nogroup-at-all", "")
	expectFiles(t, filepath.Join(root, "srv"), map[string]string{"a": "old"})
	if r := results["after"]; r == nil || r.Outcome != exec.Succeeded {
		t.Errorf("the run does not continue after a failure: %+v", r)
	}
}

// TestOversizedHashFileIsRefused checks that the error for a file with a very long line names the limit, not the line.
func TestOversizedHashFileIsRefused(t *testing.T) {
	root := t.TempDir()
	hosttest.Put(t, filepath.Join(root, "srv/in/content"), "new", 0o644)
	hosttest.Put(t, filepath.Join(root, "srv/in/program"), strings.Repeat("x", 2<<20), 0o644)
	const digest = "11507a0e2f5e69d5dfa40a62a1bd7b6ee57e6bcd85c67c9b8431b36fff21c437" // of "new"
	hosttest.Put(t, filepath.Join(root, "srv/in/sums"), strings.Repeat("y", 100<<10)+"\n"+digest+"  content\n", 0o644)
	results := converge(t, root, "/srv/a:\n  file.managed: [{source: /srv/in/content}, {source_hash: /srv/in/program}]\n"+
		"/srv/b:\n  file.managed: [{source: /srv/in/content}, {source_hash: /srv/in/sums}]\n")
	expectFailure(t, results["/srv/a"], "a line of it is longer than 1024 KiB",
		"see whether source_hash names the file of hashes")
	if b := results["/srv/b"]; b.Outcome != exec.Succeeded {
		t.Errorf("a line of 100 KiB in the file of hashes: %s", b.Comment)
	}
}

// TestASparseFileIsNotWrittenOut checks that the copy of a sparse file larger than the disk is sparse, too.
func TestASparseFileIsNotWrittenOut(t *testing.T) {
	root := t.TempDir()
	hosttest.Put(t, filepath.Join(root, "srv/in/sparse"), "x", 0o644)
	hosttest.Put(t, filepath.Join(root, "srv/out/kept"), "old", 0o644)
	if err := os.Truncate(filepath.Join(root, "srv/in/sparse"), 8<<40); err != nil {
		t.Skip(err)
	}
	results := converge(t, root, "/srv/out/a:\n  file.copy: [{source: /srv/in/sparse}]\n")
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(root, "srv/out/a"), &st); err != nil {
		t.Fatal(err, results["/srv/out/a"].Comment)
	}
	if results["/srv/out/a"].Outcome != exec.Succeeded || st.Size != 8<<40 || st.Blocks*512 > 1<<20 {
		t.Errorf("%s: %d bytes, %d on the disk", results["/srv/out/a"].Comment, st.Size, st.Blocks*512)
	}
}

// TestALinkOfAUserIsDescribedItself checks that functions describe a user's link itself, not the file of root that it
// leads to.
func TestALinkOfAUserIsDescribedItself(t *testing.T) {
	needRoot(t)
	root := t.TempDir()
	hosttest.Tree(t, root)
	hosttest.Put(t, filepath.Join(root, "etc/secret"), "x", 0o600)
	hosttest.Put(t, filepath.Join(root, "srv/out/kept"), "", 0o644)
	home := filepath.Join(root, "home/ann")
	err := errors.Join(os.MkdirAll(home, 0o755), os.Chown(home, 4242, 4242),
		os.Symlink("/etc/secret", filepath.Join(home, "key")), os.Lchown(filepath.Join(home, "key"), 4242, 4242),
		os.Symlink("/etc/secret", filepath.Join(root, "srv/key")))
	if err != nil {
		t.Fatal(err)
	}
	sls := "/srv/out/a:\n  file.managed:\n    - contents: '"
	for _, p := range []string{"/home/ann/key", "/srv/key"} {
		sls += "{{ salt['file.get_uid']('" + p + "') }} {{ salt['file.get_mode']('" + p + "') }} {{ salt['file.stats']('" +
			p + "')['size'] }},"
	}
	if r := converge(t, root, sls+"'\n")["/srv/out/a"]; r.Outcome != exec.Succeeded {
		t.Fatal(r.Comment)
	}
	data, err := os.ReadFile(filepath.Join(root, "srv/out/a"))
	if want := "4242 0777 11,0 0600 1,\n"; string(data) != want || err != nil {
		t.Errorf("%q, %v; want %q", data, err, want)
	}
}

func TestUnknownUser(t *testing.T) {
	needRoot(t)
	root := t.TempDir()
	hosttest.Tree(t, root)
	results := converge(t, root, "key:\n  ssh_auth.present:\n    - user: alcie\n    - enc: ssh-ed25519\n    - names: ["+
		benchtree.Users(1)[0].Key+"]\n")
	expectFailure(t, results["key"], "alcie", "")
}

// filesystem mounts a small file system at srv below a root.
func filesystem(t *testing.T) (root, dir string) {
	t.Helper()
	needRoot(t)
	root = t.TempDir()
	hosttest.Tree(t, root)
	dir = filepath.Join(root, "srv")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("no filesystem can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return root, dir
}

func TestNoSpace(t *testing.T) {
	root, dir := filesystem(t)
	hosttest.Put(t, filepath.Join(dir, "a"), "old", 0o644)
	results := converge(t, root, "/srv/a:\n  file.managed:\n    - contents: "+strings.Repeat("x", 200<<10)+
		"\n/srv/b:\n  file.append:\n    - text: "+strings.Repeat("y", 200<<10)+"\n    - makedirs: True\n")
	expectFailure(t, results["/srv/a"], "no space left", "make room")
	expectFailure(t, results["/srv/b"], "no space left", "make room")
	expectFiles(t, dir, map[string]string{"a": "old"})
}

func TestReadOnlyFilesystem(t *testing.T) {
	root, dir := filesystem(t)
	hosttest.Put(t, filepath.Join(dir, "a"), "old", 0o644)
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	results := converge(t, root,
		"/srv/a:\n  file.managed:\n    - contents: new\n/srv/d:\n  file.directory: []\n/srv/l:\n  file.symlink:\n"+
			"    - target: a\nno-a:\n  file.absent:\n    - name: /srv/a\n")
	for _, id := range []string{"/srv/a", "/srv/d", "/srv/l", "no-a"} {
		expectFailure(t, results[id], "read-only", "mount")
	}
	expectFiles(t, dir, map[string]string{"a": "old"})
}

func TestImmutableFile(t *testing.T) {
	needRoot(t)
	root := t.TempDir()
	hosttest.Tree(t, root)
	path := filepath.Join(root, "srv/a")
	hosttest.Put(t, path, "old", 0o644)
	if err := immutable(path, true); err != nil {
		t.Skipf("the file system has no immutable files: %v", err)
	}
	t.Cleanup(func() {
		if err := immutable(path, false); err != nil {
			t.Error(err)
		}
	})
	results := converge(t, root,
		"/srv/a:\n  file.managed:\n    - contents: new\nno-a:\n  file.absent:\n    - name: /srv/a\n")
	expectFailure(t, results["/srv/a"], "operation not permitted", "chattr -i")
	expectFailure(t, results["no-a"], "operation not permitted", "chattr -i")
	expectFiles(t, filepath.Dir(path), map[string]string{"a": "old"})
}

const immutableFlag = 0x10 // FS_IMMUTABLE_FL of linux/fs.h

// immutable sets or clears the attribute i of chattr(1).
func immutable(path string, on bool) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	flags, err := unix.IoctlGetUint32(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err == nil {
		flags &^= immutableFlag
		if on {
			flags |= immutableFlag
		}
		err = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, int(flags))
	}
	return errors.Join(err, f.Close())
}

// TestInvalidDeclarationsFailBeforeChanges checks that a mistake in a declaration is reported before anything changes.
func TestInvalidDeclarationsFailBeforeChanges(t *testing.T) {
	root := t.TempDir()
	hosttest.Tree(t, root)
	for _, c := range []struct{ name, sls, cause, hint string }{
		{"unknown function", "a:\n  file.mangaed:\n    - name: /srv/a\n", "file.mangaed", "file.managed"},
		{"missing argument", "a:\n  file.symlink:\n    - name: /srv/a\n", "target", ""},
		{"wrong type", "a:\n  file.directory:\n    - name: /srv/a\n    - makedirs: [1]\n", "makedirs", ""},
		{"impossible combination", "a:\n  file.managed:\n    - name: /srv/a\n    - contents: x\n    - contents_pillar: y\n",
			"contents", ""},
		{"unreadable source", "a:\n  file.managed:\n    - name: /srv/a\n    - source: salt://nothing\n", "salt://nothing",
			""},
		{"bad hash", "a:\n  file.managed:\n    - name: /srv/a\n    - source: salt://t.sls\n    - source_hash: md5=" +
			strings.Repeat("0", 32) + "\n", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			expectFailure(t, converge(t, root, c.sls)["a"], c.cause, c.hint)
			if _, err := os.Lstat(filepath.Join(root, "srv/a")); err == nil {
				t.Error("a state ran despite the mistake")
			}
		})
	}
}
