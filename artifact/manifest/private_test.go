package manifest_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/manifest"
)

// TestPrivateDirectoriesBehindLinks checks that a pillar may be a link to another directory, whose mode counts.
func TestPrivateDirectoriesBehindLinks(t *testing.T) {
	for to, want := range map[string]os.FileMode{"secret": 0o700, ".": 0, "../outside": 0o755, "missing": 0} {
		above := t.TempDir()
		dir := filepath.Join(above, "tree")
		for _, name := range []string{"tree/secret", "outside"} {
			if err := errors.Join(os.MkdirAll(filepath.Join(above, name), 0o755),
				os.Chmod(filepath.Join(above, name), 0o755)); err != nil {
				t.Fatal(err)
			}
		}
		tree, err := os.OpenRoot(dir)
		if err := errors.Join(err, os.Symlink(to, filepath.Join(dir, "pillar"))); err != nil {
			t.Fatal(err)
		}
		err = errors.Join(manifest.CloseLinked(tree), tree.Close())
		if (err != nil) != (to == ".") {
			t.Errorf("a link to %s: %v", to, err)
		}
		if want == 0 {
			continue
		}
		if info, err := os.Stat(filepath.Join(dir, to)); err != nil || info.Mode().Perm() != want {
			t.Errorf("the target of the link to %s has the mode %v, %v; want %v", to, info.Mode(), err, want)
		}
	}
}
