package host_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// TestTemporaryDirectoryOfRootAlone checks that no file that root runs is made in a directory in which another user
// could exchange it: a directory that others may write to, without a sticky bit.
func TestTemporaryDirectoryOfRootAlone(t *testing.T) {
	root := t.TempDir()
	h, err := host.Open(host.Options{Root: root}, host.Caches{})
	if err != nil {
		t.Fatal(err)
	}
	mode := func(dir string, mode os.FileMode) {
		t.Helper()
		dir = filepath.Join(root, dir)
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.Chmod(dir, mode)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		dir  string // gets the mode
		mode os.FileMode
		want string // where the next temporary directory is; "" for an error
	}{
		{"/var", 0o755, "/var/lib/"},
		{"/tmp", 0o777 | os.ModeSticky, "/tmp/"},
		{"/tmp", 0o777, "/var/lib/"},
		{"/tmp", 0o755, "/tmp/"},
		{"/tmp", 0o757, "/var/lib/"},
		{"/var/tmp", 0o777 | os.ModeSticky, "/var/tmp/"},
		{"/var", 0o777, ""},
	} {
		mode("/var/lib", 0o755)
		mode(c.dir, c.mode)
		dir, remove, err := h.TempDir("x-*", 0o700)
		if c.want == "" {
			if err == nil || !strings.Contains(diag.HintOf(err), "chmod 1777 /tmp") {
				t.Errorf("%s with %v: %s, %v, hint %q", c.dir, c.mode, dir, err, diag.HintOf(err))
			}
			continue
		}
		if err != nil || !strings.HasPrefix(dir, c.want) {
			t.Errorf("%s with %v: %s, %v, want one in %s", c.dir, c.mode, dir, err, c.want)
			continue
		}
		if err := remove(); err != nil {
			t.Error(err)
		}
	}
}
