package clone_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/clone"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// TestSafeDirectoryAllowsSharedClone uses a clone that all users can change, as CI makes it in a container.
func TestSafeDirectoryAllowsSharedClone(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil || os.Geteuid() != 0 {
		t.Skip("this test needs root and git")
	}
	home, dir := t.TempDir(), filepath.Join(t.TempDir(), "clone")
	t.Setenv("HOME", home)
	git := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
	}
	git("init", "--quiet", dir)
	if err := clone.CheckHere(dir); err != nil {
		t.Fatalf("in root's clone: %v", err)
	}
	if err := os.Chmod(filepath.Join(dir, ".git/config"), 0o666); err != nil {
		t.Fatal(err)
	}
	var unsafe *walk.UnsafeError
	err := clone.CheckHere(filepath.Join(dir, "sub"))
	if !errors.As(err, &unsafe) || !strings.Contains(diag.HintOf(err), "safe.directory "+dir) {
		t.Fatalf("the error is %v (%s)", err, diag.HintOf(err))
	}
	for _, c := range []struct {
		named string
		fine  bool
	}{{"/elsewhere", false}, {dir, true}, {"", false}, {filepath.Dir(dir) + "/*", true}, {"", false}, {"*", true}} {
		git("config", "--global", "--add", "safe.directory", c.named)
		if err := clone.CheckHere(dir); (err == nil) != c.fine {
			t.Errorf("with safe.directory %q: %v", c.named, err)
		}
	}
}
