//go:build integration

package cmd_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// siteOutputs returns all forms of the site of docs/packaging.md, and the files beside them.
func siteOutputs() []string {
	return []string{"site-1.0.tar.zst", "site-1.0.deb", "site-1.0.rpm", "site-1.0.oci.tar", "site-1.0.spdx.json",
		"site-1.0.provenance.json"}
}

// buildUser is a user who builds, with a user ID, a tree with files of a certain age, a umask, a time zone and a
// language.
type buildUser struct {
	uid   uint32
	umask int
	age   time.Duration
	env   []string
}

// build builds all forms of the site below a new directory.
func (s buildUser) build(t *testing.T, dir string) {
	t.Helper()
	tree := filepath.Join(dir, "site")
	if err := os.CopyFS(tree, os.DirFS("../testdata/demo/site")); err != nil {
		t.Fatal(err)
	}
	then := time.Now().Add(-s.age)
	err := filepath.WalkDir(dir, func(file string, _ os.DirEntry, err error) error {
		if err == nil {
			err = os.Chtimes(file, then, then)
		}
		if err == nil {
			err = os.Chown(file, int(s.uid), int(s.uid))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	before := syscall.Umask(s.umask)
	defer syscall.Umask(before)
	args := []string{"build", "./site", "--version", "1.0"}
	for _, name := range siteOutputs()[:4] {
		args = append(args, "-o", name)
	}
	cmd := exec.Command(filepath.Join(bin(t), "corpus"), args...)
	cmd.Dir, cmd.Env = dir, append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir}, s.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: s.uid, Gid: s.uid}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func digestOf(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// open gives all users access to a directory and to those above it that belong to this test.
func open(t *testing.T, dir string) string {
	t.Helper()
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestTwoBuildsAreTheSameToDiffoscope builds all forms in two directories, at two times, by two users, and compares
// them with diffoscope; rpm then installs the package.
func TestTwoBuildsAreTheSameToDiffoscope(t *testing.T) {
	clean := cleaner(t)
	root := clean("diffoscope-minimal", "rpm", "xz-utils", "zstd")
	open(t, bin(t))
	one, two := open(t, t.TempDir()), filepath.Join(open(t, t.TempDir()), "somewhere", "else entirely")
	if err := os.MkdirAll(two, 0o755); err != nil {
		t.Fatal(err)
	}
	buildUser{umask: 0o077, env: []string{"USER=root", "TZ=UTC", "LANG=C"}}.build(t, one)
	open(t, two)
	buildUser{uid: 65534, umask: 0o002, age: 1000 * time.Hour, env: []string{"USER=nobody", "TZ=Asia/Kathmandu",
		"LC_ALL=tr_TR.UTF-8", "LANGUAGE=tr"}}.build(t, two)
	for _, name := range siteOutputs() {
		if a, b := digestOf(t, filepath.Join(one, name)), digestOf(t, filepath.Join(two, name)); a != b {
			t.Errorf("%s has the digests %s and %s", name, a, b)
		}
		root.copyIn(filepath.Join(one, name), "/one/"+name)
		root.copyIn(filepath.Join(two, name), "/two/"+name)
	}
	if out, err := root.try("diffoscope", "/one", "/two", "--exclude-directory-metadata=yes"); err != nil || out != "" {
		t.Errorf("diffoscope shows %v\n%s", err, out)
	}
	t.Run("diffoscope finds differences", func(t *testing.T) {
		root.must("sh", "-c", "cp -r /two /three && printf x >>/three/site-1.0.spdx.json")
		if out, err := root.try("diffoscope", "/one", "/three", "--exclude-directory-metadata=yes"); err == nil ||
			!strings.Contains(out, "spdx.json") {
			t.Errorf("diffoscope shows %v\n%s", err, out)
		}
	})
	t.Run("rpm installs the package", func(t *testing.T) {
		rpm := func(args ...string) string { return root.must(append([]string{"rpm", "--root", "/host"}, args...)...) }
		root.must("mkdir", "/host")
		rpm("--initdb")
		rpm("-K", "--nosignature", "/one/site-1.0.rpm")
		rpm("-i", "--nodeps", "--ignorearch", "/one/site-1.0.rpm")
		if got := rpm("-q", "site"); !strings.HasPrefix(got, "site-1.0-1.") {
			t.Errorf("rpm knows %q", got)
		}
		if got := rpm("-ql", "site"); !strings.Contains(got, "/opt/site/index.html") ||
			!strings.Contains(got, "/opt/site/.corpus/release.json") {
			t.Errorf("the package has the files\n%s", got)
		}
		if got := rpm("-V", "--nodeps", "site"); got != "" {
			t.Errorf("the installed files differ from the package:\n%s", got)
		}
		if data, err := os.ReadFile(filepath.Join(root.Root, "host/opt/site/index.html")); err != nil || len(data) == 0 {
			t.Errorf("the page is %q, %v", data, err)
		}
		rpm("-e", "site")
		if _, err := os.Stat(filepath.Join(root.Root, "host/opt/site/index.html")); err == nil {
			t.Error("removing the package leaves the page")
		}
	})
}
