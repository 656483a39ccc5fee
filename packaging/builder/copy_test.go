package builder_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/corpus-agent/corpus-agent/packaging/builder"
	"github.com/corpus-agent/corpus-agent/packaging/seen"
)

// TestCopyOfAnExchangedFileIsRefused exchanges a file, and a directory, of a source tree for a link to another place at
// the moment before they are copied.
func TestCopyOfAnExchangedFileIsRefused(t *testing.T) {
	for _, name := range []string{"d/file", "d"} {
		from, outside, to := t.TempDir(), t.TempDir(), t.TempDir()
		if err := errors.Join(os.Mkdir(filepath.Join(from, "d"), 0o755),
			os.WriteFile(filepath.Join(from, "d/file"), []byte("public"), 0o644),
			os.Mkdir(filepath.Join(outside, "d"), 0o700),
			os.WriteFile(filepath.Join(outside, "d/file"), []byte("secret"), 0o600)); err != nil {
			t.Fatal(err)
		}
		err := builder.CopyTree(t.Context(), from, to, func(present string) bool {
			if present == name {
				at := filepath.Join(from, name)
				if err := errors.Join(os.Rename(at, at+".old"), os.Symlink(filepath.Join(outside, name), at)); err != nil {
					t.Error(err)
				}
			}
			return false
		})
		if !errors.Is(err, seen.ErrChanged) {
			t.Errorf("%s: error is %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(to, "d/file")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: it was copied (%v)", name, err)
		}
	}
}
