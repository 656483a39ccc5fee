//go:build integration

package cmd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// siteOutputs are all forms of the site of docs/packaging.md, and what goes beside them.
func siteOutputs() []string {
	return []string{"site-1.0.tar.zst", "site-1.0.deb", "site-1.0.rpm", "site-1.0.oci.tar", "site-1.0.spdx.json", "site-1.0.provenance.json"}
}

// buildAs builds all forms of the site as a user, below a directory of his own, from a tree whose
// files are as old as that user's copy is, and under his umask.
func buildAs(t *testing.T, dir string, uid uint32, umask int, age time.Duration) {
	t.Helper()
	tree := filepath.Join(dir, "site")
	if err := os.CopyFS(tree, os.DirFS("../testdata/demo/site")); err != nil {
		t.Fatal(err)
	}
	then := time.Now().Add(-age)
	err := filepath.WalkDir(dir, func(file string, _ os.DirEntry, err error) error {
		if err == nil {
			err = os.Chtimes(file, then, then)
		}
		if err == nil {
			err = os.Chown(file, int(uid), int(uid))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	before := syscall.Umask(umask)
	defer syscall.Umask(before)
	args := []string{"build", "./site", "--version", "1.0"}
	for _, name := range siteOutputs()[:4] {
		args = append(args, "-o", name)
	}
	cmd := exec.Command(filepath.Join(bin(t), "corpus"), args...)
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "USER=user" + filepath.Base(dir)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// open lets everybody into a directory and those above it that are this test's.
func open(t *testing.T, dir string) string {
	t.Helper()
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestTwoBuildsAreTheSameToDiffoscope builds all forms in two directories, at two times, by two users,
// and has diffoscope compare them; rpm then installs what was built.
func TestTwoBuildsAreTheSameToDiffoscope(t *testing.T) {
	clean := cleaner(t)
	root := clean("diffoscope-minimal", "rpm", "xz-utils", "zstd")
	open(t, bin(t))
	one, two := open(t, t.TempDir()), filepath.Join(open(t, t.TempDir()), "somewhere", "else entirely")
	if err := os.MkdirAll(two, 0o755); err != nil {
		t.Fatal(err)
	}
	buildAs(t, one, 0, 0o077, 0)
	open(t, two)
	buildAs(t, two, 65534, 0o002, 1000*time.Hour)
	for _, name := range siteOutputs() {
		root.copyIn(filepath.Join(one, name), "/one/"+name)
		root.copyIn(filepath.Join(two, name), "/two/"+name)
	}
	if out, err := root.try("diffoscope", "/one", "/two", "--exclude-directory-metadata=yes"); err != nil || out != "" {
		t.Errorf("diffoscope shows %v\n%s", err, out)
	}
	t.Run("diffoscope sees what differs", func(t *testing.T) {
		root.must("sh", "-c", "cp -r /two /three && printf x >>/three/site-1.0.spdx.json")
		if out, err := root.try("diffoscope", "/one", "/three", "--exclude-directory-metadata=yes"); err == nil || !strings.Contains(out, "spdx.json") {
			t.Errorf("it shows %v\n%s", err, out)
		}
	})
	t.Run("rpm installs it", func(t *testing.T) {
		rpm := func(args ...string) string { return root.must(append([]string{"rpm", "--root", "/host"}, args...)...) }
		root.must("mkdir", "/host")
		rpm("--initdb")
		rpm("-K", "--nosignature", "/one/site-1.0.rpm")
		rpm("-i", "--nodeps", "--ignorearch", "/one/site-1.0.rpm")
		if got := rpm("-q", "site"); !strings.HasPrefix(got, "site-1.0-1.") {
			t.Errorf("rpm knows %q", got)
		}
		if got := rpm("-ql", "site"); !strings.Contains(got, "/opt/site/index.html") || !strings.Contains(got, "/opt/site/.corpus/release.json") {
			t.Errorf("it holds\n%s", got)
		}
		if got := rpm("-V", "--nodeps", "site"); got != "" {
			t.Errorf("what is installed differs from the package:\n%s", got)
		}
		if data, err := os.ReadFile(filepath.Join(root.Root, "host/opt/site/index.html")); err != nil || len(data) == 0 {
			t.Errorf("the page is %q, %v", data, err)
		}
		rpm("-e", "site")
		if _, err := os.Stat(filepath.Join(root.Root, "host/opt/site/index.html")); err == nil {
			t.Error("removing it leaves the page")
		}
	})
}
