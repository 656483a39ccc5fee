package host_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// TestDeclarationsAreNotedWithoutALook notes what states declare at a path before anything is there, so that a run
// without changes makes no system call for it. Only what is in the way of a later state is looked at.
func TestDeclarationsAreNotedWithoutALook(t *testing.T) {
	root := t.TempDir()
	h, err := host.Open(host.Options{Root: root}, host.Caches{})
	if err != nil {
		t.Fatal(err)
	}
	h.NoteDeclared("/data/d", fs.ModeDir, false)
	h.NoteDeclared("/data/gone", 0, true)
	data := filepath.Join(root, "data")
	if err := errors.Join(os.MkdirAll(data+"/d", 0o755), os.Mkdir(data+"/other", 0o755),
		os.Chmod(data, 0o777)); err != nil {
		t.Fatal(err)
	}
	inTheWay := func(p string) error {
		info, err := h.Files.Lstat(p)
		if err != nil {
			t.Fatal(err)
		}
		return host.Unlike(p, info, host.AFile, "")
	}
	for name, c := range map[string]struct {
		err error
		own bool
	}{
		"declared":         {inTheWay("/data/d"), true},
		"declared absence": {host.Gone("/data/gone", fs.ErrNotExist), true},
		"a user's":         {inTheWay("/data/other"), false},
		"a user's absence": {host.Gone("/data/none", fs.ErrNotExist), false},
	} {
		by, _ := h.ObstructionOf(c.err)
		if (by == nil) != c.own {
			t.Errorf("%s: the obstruction is %v", name, by)
		}
	}
}
