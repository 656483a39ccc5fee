package site

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// TestFilesOfOtherUsersInTmpAreNotSwept leaves temporary files of root and of a user in a directory such as /tmp, and
// in one of root alone, where files that a state made may have their later owner already.
func TestFilesOfOtherUsersInTmpAreNotSwept(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this test needs root: it makes files of other users")
	}
	for mode, want := range map[os.FileMode][]string{0o777 | os.ModeSticky: {"dir-of-user", "file-of-user"}, 0o755: nil} {
		root := t.TempDir()
		dir := filepath.Join(root, "d")
		errs := []error{os.Mkdir(dir, 0o755), os.Chmod(dir, mode)}
		for _, owner := range []string{"root", "user"} {
			file := filepath.Join(dir, walk.TempPrefix+"file-of-"+owner)
			tree := filepath.Join(dir, walk.TempPrefix+"dir-of-"+owner)
			errs = append(errs, os.WriteFile(file, nil, 0o600), os.MkdirAll(tree+"/sub", 0o700))
			if owner == "user" {
				errs = append(errs, os.Chown(file, 65534, 65534), os.Chown(tree, 65534, 65534))
			}
		}
		s := &Site{Layout: layout.Layout{Root: root}}
		if err := errors.Join(append(errs, s.sweepSafely(t.Context(), "/d"))...); err != nil {
			t.Fatal(err)
		}
		all, err := filepath.Glob(dir + "/" + walk.TempPrefix + "*")
		if err != nil {
			t.Fatal(err)
		}
		var left []string
		for _, file := range all {
			left = append(left, filepath.Base(file)[len(walk.TempPrefix):])
		}
		if !slices.Equal(left, want) {
			t.Errorf("in a directory of mode %v, %q are left, want %q", mode, left, want)
		}
	}
}
