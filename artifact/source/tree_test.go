package source_test

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/source"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// repository is a git repository with two commits on main, a tag on the first, and a branch.
type repository struct {
	dir, first string
}

func newRepository(t *testing.T) repository {
	t.Helper()
	r := repository{dir: filepath.Join(t.TempDir(), "app.git")}
	r.git(t, "init", "--quiet", "--initial-branch=main", r.dir)
	r.commit(t, "one", map[string]string{"README": "first", "states/top.sls": "base: {}\n",
		"states/run.sh": "#!/bin/sh\n"})
	r.first = r.git(t, "-C", r.dir, "rev-parse", "HEAD")
	r.git(t, "-C", r.dir, "tag", "v1.0")
	r.commit(t, "two", map[string]string{"README": "second"})
	r.git(t, "-C", r.dir, "checkout", "--quiet", "-b", "feature/x")
	r.commit(t, "three", map[string]string{"README": "feature"})
	r.git(t, "-C", r.dir, "checkout", "--quiet", "main")
	return r
}

func (r repository) git(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=Test", "-c", "user.email=test@example.com", "-c",
		"commit.gpgsign=false"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r repository) commit(t *testing.T, message string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(r.dir, name)
		mode := os.FileMode(0o644)
		if strings.HasSuffix(name, ".sh") {
			mode = 0o755
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), mode)); err != nil {
			t.Fatal(err)
		}
	}
	r.git(t, "-C", r.dir, "add", "-A")
	r.git(t, "-C", r.dir, "commit", "--quiet", "-m", message)
}

func tree(t *testing.T, dir string) string {
	t.Helper()
	all := []string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if rel, _ := filepath.Rel(dir, path); err == nil && !d.IsDir() {
			all = append(all, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func TestFetchedTreeHasItsCommit(t *testing.T) {
	r := newRepository(t)
	main := r.git(t, "-C", r.dir, "rev-parse", "main")
	r.git(t, "-C", r.dir, "tag", "-a", "-m", "with a word", "v2.0", r.first)
	for ref, want := range map[string]source.Commit{
		"?ref=v1.0":           {ID: r.first, Tag: "v1.0"},
		"?ref=v2.0":           {ID: r.first, Tag: "v2.0"},
		"?ref=refs/tags/v1.0": {ID: r.first, Tag: "v1.0"},
		"?ref=" + r.first:     {ID: r.first},
		"?ref=main":           {ID: main},
		"":                    {ID: main},
	} {
		want.URL = "file://" + r.dir
		got, err := source.Tree(t.Context(), "git::file://"+r.dir+ref, filepath.Join(t.TempDir(), "tree"), source.Options{})
		if err != nil || got != want {
			t.Errorf("%q is %+v, %v; want %+v", ref, got, err, want)
		}
	}
	if got, err := source.Tree(t.Context(), "file://"+filepath.Join(r.dir, "states"),
		filepath.Join(t.TempDir(), "tree"), source.Options{}); err != nil || got != (source.Commit{}) {
		t.Errorf("a directory is %+v, %v", got, err)
	}
}

func TestGit(t *testing.T) {
	r := newRepository(t)
	base := "git::file://" + r.dir
	for u, want := range map[string]string{
		base:                         "second",
		base + "?ref=main":           "second",
		base + "?ref=v1.0":           "first",
		base + "?ref=feature/x":      "feature",
		base + "?ref=" + r.first:     "first",
		base + "?ref=refs/tags/v1.0": "first",
	} {
		dst := filepath.Join(t.TempDir(), "tree")
		if _, err := source.Tree(t.Context(), u, dst, source.Options{}); err != nil {
			t.Errorf("%s: %v, hint %q", u, err, diag.HintOf(err))
			continue
		}
		got, err := os.ReadFile(filepath.Join(dst, "README"))
		if string(got) != want || err != nil {
			t.Errorf("%s: README is %q, %v, want %q", u, got, err, want)
		}
		if got := tree(t, dst); got != "README states/run.sh states/top.sls" {
			t.Errorf("%s: the tree is %s", u, got)
		}
		if stat, err := os.Stat(filepath.Join(dst, "states/run.sh")); err != nil || stat.Mode()&0o100 == 0 {
			t.Errorf("%s: the program is not executable any more: %v", u, err)
		}
	}
}

func TestGitDirectory(t *testing.T) {
	r, dst := newRepository(t), t.TempDir()
	if _, err := source.Tree(t.Context(), "git::file://"+r.dir+"//states?ref=v1.0", dst, source.Options{}); err != nil {
		t.Fatal(err)
	}
	if got := tree(t, dst); got != "run.sh top.sls" {
		t.Errorf("the tree is %s", got)
	}
}

// TestGitInsideAHook checks that the environment of a git hook, which names the hook's own repository, is ignored.
func TestGitInsideAHook(t *testing.T) {
	r := newRepository(t)
	for _, name := range []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"} {
		t.Setenv(name, filepath.Join(t.TempDir(), "wrong"))
	}
	if _, err := source.Tree(t.Context(), "git::file://"+r.dir,
		filepath.Join(t.TempDir(), "tree"), source.Options{}); err != nil {
		t.Error(err)
	}
}

func TestDirectory(t *testing.T) {
	r := newRepository(t)
	if err := os.Symlink("top.sls", filepath.Join(r.dir, "states/link.sls")); err != nil {
		t.Fatal(err)
	}
	dst := filepath.Join(t.TempDir(), "copy")
	if _, err := source.Tree(t.Context(), "file://"+filepath.Join(r.dir, "states"), dst, source.Options{}); err != nil {
		t.Fatal(err)
	}
	if got := tree(t, dst); got != "link.sls run.sh top.sls" {
		t.Errorf("the tree is %s", got)
	}
}

func TestTreeRefused(t *testing.T) {
	r := newRepository(t)
	evil := newRepository(t)
	for _, link := range []string{"link", "states/link"} {
		if err := os.Symlink("/etc/passwd", filepath.Join(evil.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	evil.commit(t, "evil", nil)
	for _, c := range []struct{ url, message string }{
		{"git::file://" + r.dir + "?ref=absent", "couldn't find remote ref absent"},
		{"git::file://" + r.dir + "/nowhere", "does not appear to be a git repository"},
		{"git::file://" + r.dir + "//absent", "not found"},
		{"git::file://" + r.dir + "//../..", "traversal"},
		{"git::file://" + evil.dir, "link leads out of the tree"},
		{"git::file://" + evil.dir + "//states", "symlink"},
		{"file://" + evil.dir, "link leads out of the tree"},
		{"file://" + r.dir + "/README", "not a directory"},
		{"git::file://" + r.dir + "?checksum=" + sum("x"), "no checksum"},
		{"https://host.example.com/app.tar.gz", "comes from git"},
	} {
		dir := t.TempDir()
		_, err := source.Tree(t.Context(), c.url, filepath.Join(dir, "tree"), source.Options{})
		if err == nil || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s: %v", c.url, err)
		}
		expectNoFiles(t, dir)
	}
	dir := t.TempDir()
	if _, err := source.Tree(t.Context(), "git::file://"+r.dir, filepath.Join(dir, "tree"),
		source.Options{Limit: 10}); err == nil || !strings.Contains(err.Error(), "more than 10 bytes") {
		t.Errorf("too large: %v", err)
	}
	expectNoFiles(t, dir)
}

func TestTreeOverSomething(t *testing.T) {
	r, dst := newRepository(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(dst, "precious"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := source.Tree(t.Context(), "git::file://"+r.dir, dst, source.Options{}); err == nil ||
		!strings.Contains(diag.HintOf(err), "an empty directory") {
		t.Errorf("%v", err)
	}
	if got := tree(t, dst); got != "precious" {
		t.Errorf("the tree is %s", got)
	}
}

// TestGitIsCancelled fetches from a server that never responds: git and its child process for the network must end.
func TestGitIsCancelled(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err = source.Tree(ctx, "git::http://"+l.Addr().String()+"/app.git", filepath.Join(dir, "tree"), source.Options{})
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 30*time.Second {
		t.Errorf("%v after %v", err, time.Since(start))
	}
	expectNoFiles(t, dir)
}

// TestDirectoryIsCancelled cancels the copy of a large file, and checks that a copy above the limit does not begin.
func TestDirectoryIsCancelled(t *testing.T) {
	from, dir := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(from, "big"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(from, "big"), 4<<30); err != nil {
		t.Fatal(err)
	}
	if _, err := source.Tree(t.Context(), "file://"+from, filepath.Join(dir, "tree"),
		source.Options{Limit: 1 << 30}); err == nil || !strings.Contains(diag.HintOf(err), "--max-source") {
		t.Errorf("more than the limit: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := source.Tree(ctx, "file://"+from, filepath.Join(dir, "tree"), source.Options{})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v", err)
	}
	expectNoFiles(t, dir)
}
