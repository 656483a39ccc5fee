package procedure_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/procedure"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
	"github.com/corpus-agent/corpus-agent/state/yaml"
)

// tree makes a tree of files; those whose names end in ! are executable.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		name, executable := strings.CutSuffix(name, "!")
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o644)
		if executable {
			mode = 0o755
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestUnknownStepsAreRefused(t *testing.T) {
	o, err := procedure.ParseOnly("install, fixperms")
	if err != nil || !o.Has("install") || !o.Has("fixperms") || o.Has("converge") || o.All() {
		t.Errorf("install and fixperms are %v, %v", o, err)
	}
	if o, err := procedure.ParseOnly(""); err != nil || !o.All() || !o.Has("converge") {
		t.Errorf("without a choice the steps are %v, %v", o, err)
	}
	if _, err := procedure.ParseOnly("instal"); err == nil || diag.HintOf(err) != `did you mean "install"? [C077]` {
		t.Errorf("a misspelled step: %v, hint %q", err, diag.HintOf(err))
	}
	if _, err := procedure.ParseOnly("everything"); err == nil || !strings.Contains(diag.HintOf(err), "release-sync") {
		t.Errorf("with all steps excluded: %v, hint %q", err, diag.HintOf(err))
	}
}

func TestInstallRunsExecutablesInByteOrder(t *testing.T) {
	dir := tree(t, map[string]string{
		".salt/10_app.sls": "", ".salt/00_setup.sls": "", ".salt/B.sls": "", ".salt/a.sls": "", ".salt/9.sls": "",
		".salt/archive.sls": "", ".salt/rollback.sls": "", ".salt/fixperms.sls": "", ".salt/notify.sls": "",
		".salt/task_migrate.sls": "",
		".salt/sub/init.sls":     "", ".salt/PILLAR.sample": "", ".salt/.hidden.sls": "",
	})
	got, err := procedure.InstallSLS(dir)
	if want := []string{"00_setup", "10_app", "9", "B", "a"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("install runs %v, %v, want %v", got, err, want)
	}
	if _, err := procedure.InstallSLS(tree(t, map[string]string{".salt/1.0.sls": ""})); err == nil ||
		!strings.Contains(err.Error(), ".salt/1.0.sls") {
		t.Errorf("with an unsafe name: %v", err)
	}
}

func TestOwnProcedures(t *testing.T) {
	dir := tree(t, map[string]string{".salt/fixperms.sls": "", ".salt/notify!": "#!/bin/sh\n", ".salt/notify.sls": "",
		".salt/rollback": "not executable"})
	for name, want := range map[string]procedure.Own{
		"fixperms": {SLS: "fixperms"}, "notify": {Executable: filepath.Join(dir, ".salt/notify")}, "archive": {},
	} {
		if got, err := procedure.Find(dir, name); err != nil || got != want {
			t.Errorf("%s is %+v, %v, want %+v", name, got, err, want)
		}
	}
	if _, err := procedure.Find(dir, "rollback"); err == nil || !strings.Contains(diag.HintOf(err), "chmod +x") {
		t.Errorf("a file that is not executable: %v", err)
	}
}

// kept makes a tree to archive.
func kept(t *testing.T, dir string) procedure.Tree {
	t.Helper()
	root, err := walk.Open(walk.Options{Dir: dir, Safe: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return procedure.Tree{Root: root, Path: "/", Note: t.Logf}
}

func TestArchiveIsIndependentCopy(t *testing.T) {
	dir := tree(t, map[string]string{"a/b": "content", "run!": "#!/bin/sh\n"})
	old := time.Unix(1000000000, 0)
	for _, path := range []string{"a/b", "a"} {
		if err := os.Chtimes(filepath.Join(dir, path), old, old); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("a/b", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "archives", "1", "project")
	for _, readOnly := range []string{filepath.Join(dir, "a"), filepath.Join(to, "a")} {
		t.Cleanup(func() { _ = os.Chmod(readOnly, 0o755) }) // only root can empty a read-only directory
	}
	if err := os.Chmod(filepath.Join(dir, "a"), 0o555); err != nil {
		t.Fatal(err)
	}
	if err := kept(t, dir).Archive(context.Background(), to); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a/b"), []byte("changed"), 0o644); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(to, "link"))
	if err != nil || string(data) != "content" {
		t.Errorf("the link in the archive leads to %q, %v", data, err)
	}
	for path, mode := range map[string]os.FileMode{"run": 0o755, "a": os.ModeDir | 0o555, "a/b": 0o644} {
		info, err := os.Stat(filepath.Join(to, path))
		if err != nil || info.Mode() != mode {
			t.Errorf("%s has mode %v, %v, want %v", path, info.Mode(), err, mode)
		}
		if path != "run" && !info.ModTime().Equal(old) {
			t.Errorf("%s has the time %v", path, info.ModTime())
		}
	}
}

func TestInterruptedArchiveLeavesNoFiles(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	to := filepath.Join(t.TempDir(), "project")
	if err := kept(t, tree(t, map[string]string{"a": ""})).Archive(ctx, to); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
	if left, _ := os.ReadDir(filepath.Dir(to)); len(left) != 0 {
		t.Errorf("the files %v remain", left)
	}
}

// TestArchiveKeepsHardLinks archives a file with holes and many names in several directories.
func TestArchiveKeepsHardLinks(t *testing.T) {
	dir := tree(t, map[string]string{"a/first": "", "b/c/d": "own", "z": "z"})
	first := filepath.Join(dir, "a/first")
	if err := errors.Join(os.WriteFile(first, bytes.Repeat([]byte("x"), 1<<20), 0o644),
		os.Truncate(first, 1<<30)); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if err := os.Link(first, filepath.Join(dir, "b/c", fmt.Sprintf("name%02d", i))); err != nil {
			t.Fatal(err)
		}
	}
	from := kept(t, dir)
	if takes, err := from.Measure(t.Context()); err != nil || takes.Bytes > 3<<20 || takes.Files > 10 {
		t.Errorf("the tree has %d bytes and %d files, %v", takes.Bytes, takes.Files, err)
	}
	to := filepath.Join(t.TempDir(), "archives", "project")
	if err := from.Archive(t.Context(), to); err != nil {
		t.Fatal(err)
	}
	one, err := os.Stat(filepath.Join(to, "a/first"))
	if err != nil {
		t.Fatal(err)
	}
	if st := one.Sys().(*syscall.Stat_t); st.Nlink != 101 || one.Size() != 1<<30 || st.Blocks*512 > 2<<20 ||
		one.Mode().Perm() != 0o644 {
		t.Errorf("the copy has %d names, %d bytes on %d blocks and mode %v", st.Nlink, one.Size(), st.Blocks, one.Mode())
	}
	if other, err := os.Stat(filepath.Join(to, "b/c/name99")); err != nil || !os.SameFile(one, other) {
		t.Errorf("another name has another inode, %v", err)
	}
	if data, err := os.ReadFile(filepath.Join(to, "b/c/d")); err != nil || string(data) != "own" {
		t.Errorf("a file with one name has %q, %v", data, err)
	}
	if left, _ := os.ReadDir(filepath.Dir(to)); len(left) != 1 {
		t.Errorf("the directory of archives also has %v", left)
	}
}

func mapping(t *testing.T, text string) *value.Map {
	t.Helper()
	doc, err := yaml.LoadString(text, "test")
	if err != nil {
		t.Fatal(err)
	}
	return doc.Value.(*value.Map)
}

func TestLayersOfTheConfiguration(t *testing.T) {
	given, err := procedure.ParseSettings([]string{"port=9000", "data:db:name=x"}, procedure.Input{})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := procedure.Layers{
		Project: "myapp", Env: "prod", OS: "Debian", Given: given,
		Facts: value.NewMap("name", "myapp", "data_root", "/srv/projects/myapp/data"),
		Sample: mapping(t, `
makina-projects.myapp:
  user: web
  data: {domain: sample.example.com, url: "https://{domain}:{port}/", port: 80, workers: 1, mail: local, db: {host: localhost}}
  env_defaults: {prod: {workers: 8}, dev: {workers: 2}}
  os_defaults: {Debian: {mail: exim}, Ubuntu: {mail: postfix}}
`),
		Pillar: mapping(t,
			"makina-projects.myapp: {data: {domain: '{name}.example.org', cache: '{data_root}/cache', braces: '{nobody}'}}"),
		Saved: mapping(t, "data: {port: 8000, workers: 9}"),
	}.Merge()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"user": "web", "data:domain": "myapp.example.org", "data:url": "https://myapp.example.org:9000/", "data:port": "9000",
		"data:workers": "9",
		"data:mail":    "exim", "data:cache": "/srv/projects/myapp/data/cache", "data:braces": "{nobody}",
		"data:db:host": "localhost", "data:db:name": "x",
	} {
		if v, _ := value.Lookup(cfg, path, ":"); value.Str(v) != want {
			t.Errorf("%s is %v, want %s", path, v, want)
		}
	}
}

func TestConfigurationThatRefersToItself(t *testing.T) {
	_, err := procedure.Layers{Sample: mapping(t, "data: {a: 'x{b}', b: 'y{a}'}")}.Merge()
	if err == nil || !strings.Contains(err.Error(), "refers to itself") {
		t.Errorf("error is %v", err)
	}
	for _, bad := range []string{"novalue", "=x", "a::b=1", ":a=1"} {
		if _, err := procedure.ParseSettings([]string{bad}, procedure.Input{}); err == nil {
			t.Errorf("%q was accepted as a setting", bad)
		}
	}
}

func TestSSHKeysAreOpenSSHs(t *testing.T) {
	private, public, err := procedure.NewSSHKey("myapp@host")
	if err != nil {
		t.Fatal(err)
	}
	keygen, err := exec.LookPath("ssh-keygen")
	if err != nil {
		t.Skip("ssh-keygen is not installed")
	}
	file := filepath.Join(t.TempDir(), "id")
	if err := os.WriteFile(file, private, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(keygen, "-y", "-f", file).CombinedOutput()
	if err != nil || !strings.HasPrefix(string(public), strings.TrimSpace(string(out))) {
		t.Errorf("ssh-keygen reads %s, %v, want %s", out, err, public)
	}
}

func TestSkeletonKeepsExistingFiles(t *testing.T) {
	dir := tree(t, map[string]string{".salt/fixperms!": "#!/bin/sh\n", ".salt/PILLAR.sample": "mine: 1\n"})
	written, err := procedure.WriteSkeleton(kept(t, dir).Root, "/", "myapp")
	slices.Sort(written)
	if want := []string{"archive.sls", "notify.sls", "rollback.sls"}; err != nil || !slices.Equal(written, want) {
		t.Errorf("the written files are %v, %v, want %v", written, err, want)
	}
}
