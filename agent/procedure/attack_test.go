package procedure_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/procedure"
)

const attacker = 64021

// asUser runs a shell script as an unprivileged user until the test ends.
func asUser(t *testing.T, dir, script string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("this test needs root: it runs a process of another user")
	}
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: attacker, Gid: attacker}, Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
}

// openToUser gives a directory of the test to a user.
func openToUser(t *testing.T, dir string) {
	t.Helper()
	for d := filepath.Dir(dir); d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(dir, attacker, attacker); err != nil {
		t.Fatal(err)
	}
}

// TestArchiveWhileUserExchangesFiles archives a tree while its user replaces a file and a directory with links to
// another user's file and pipes, or removes them.
func TestArchiveWhileUserExchangesFiles(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this test needs root: it runs a process of another user")
	}
	top := t.TempDir()
	secret := filepath.Join(top, "secret")
	dir := filepath.Join(top, "tree")
	if err := errors.Join(os.Mkdir(secret, 0o755), os.Mkdir(dir, 0o755),
		os.WriteFile(filepath.Join(secret, "f"), []byte("the secret"), 0o600)); err != nil {
		t.Fatal(err)
	}
	openToUser(t, dir)
	asUser(t, dir, `while :; do
echo x >f; mkdir -p d; echo y >d/f; mv d e; ln -s ../secret d; rm -f f; ln -s ../secret/f f; rm d; mv e d
rm -f f; mkfifo f; rm -f f d/f; rmdir d; chmod 000 . ; chmod 755 .; done`)
	ctx, stop := context.WithTimeout(context.Background(), 60*time.Second)
	defer stop()
	began := time.Now()
	for i := 0; time.Since(began) < 4*time.Second; i++ {
		to := filepath.Join(top, "archives", "a", "project")
		if err := at(kept(t, top), "/tree").Archive(ctx, to); err != nil {
			t.Fatalf("try %d: %v", i, err)
		}
		for _, name := range []string{"f", "d/f", "e/f"} {
			if data, err := os.ReadFile(filepath.Join(to, name)); err == nil && strings.Contains(string(data), "secret") {
				if info, err := os.Lstat(filepath.Join(to, name)); err == nil && info.Mode().IsRegular() {
					t.Fatalf("try %d: the archive has the content %q in %s", i, data, name)
				}
			}
		}
		if err := os.RemoveAll(filepath.Join(top, "archives")); err != nil {
			t.Fatal(err)
		}
	}
}

// TestArchiveOfSpecialFiles archives a pipe, a file with holes, a hard link to a file of another user, and a closed
// directory.
func TestArchiveOfSpecialFiles(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this test needs root: it makes files of several users")
	}
	top := t.TempDir()
	dir := filepath.Join(top, "tree")
	if err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(top, "shadow"), []byte("secret"),
		0o600)); err != nil {
		t.Fatal(err)
	}
	openToUser(t, dir)
	closed := filepath.Join(dir, "closed")
	holes := filepath.Join(dir, "holes")
	if err := errors.Join(syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o666),
		os.Link(filepath.Join(top, "shadow"), filepath.Join(dir, "hard")),
		os.Mkdir(closed, 0o755), os.WriteFile(filepath.Join(closed, "f"), []byte("kept"), 0o600), os.Chmod(closed, 0),
		os.WriteFile(holes, []byte("start"), 0o4755), os.Chmod(holes, 0o755|os.ModeSetuid),
		os.Truncate(holes, 1<<40)); err != nil {
		t.Fatal(err)
	}
	tree := at(kept(t, top), "/tree")
	if takes, err := tree.Measure(t.Context()); err != nil || takes.Bytes > 1<<20 {
		t.Errorf("the size of the tree is %d, %v", takes.Bytes, err)
	}
	to := filepath.Join(top, "archives", "project")
	if err := tree.Archive(t.Context(), to); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Dir(to)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory of archives has the mode %v, %v", info.Mode(), err)
	}
	if data, err := os.ReadFile(filepath.Join(to, "closed/f")); err != nil || string(data) != "kept" {
		t.Errorf("the file in the closed directory is %q, %v", data, err)
	}
	for _, name := range []string{"pipe", "hard"} {
		if _, err := os.Lstat(filepath.Join(to, name)); !os.IsNotExist(err) {
			t.Errorf("%s was archived: %v", name, err)
		}
	}
	info, err := os.Stat(filepath.Join(to, "holes"))
	if err != nil || info.Size() != 1<<40 || info.Sys().(*syscall.Stat_t).Blocks > 64 || info.Mode()&os.ModeSetuid != 0 {
		t.Errorf("the file with holes has the info %v, %v", info, err)
	}
}

func at(tree procedure.Tree, path string) procedure.Tree {
	tree.Path = path
	return tree
}
