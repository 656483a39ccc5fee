package packaging_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/packaging"
	"github.com/corpus-agent/corpus-agent/packaging/seen"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// exchange puts one path in the place of another, as a user does who may write to the directory.
func exchange(t *testing.T, a, b string) {
	t.Helper()
	if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
		t.Fatal(err)
	}
}

// exchangedTree makes a tree whose last files are opened only after the first ones are packed, and a directory outside
// with files of the same names and sizes. It returns both.
func exchangedTree(t *testing.T) (tree, outside string) {
	t.Helper()
	tree, outside = t.TempDir(), t.TempDir()
	small, large := bytes.Repeat([]byte("public\n"), 30_000), bytes.Repeat([]byte("public\n"), 60_000)
	files := map[string][]byte{"z/large": large, "z/small": small}
	for i := range 20 { // more than what is read ahead
		files[fmt.Sprintf("a/%02d", i)] = small
	}
	for name, data := range files {
		file := filepath.Join(tree, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, data, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for name, data := range map[string][]byte{"large": large, "small": small} {
		secret := bytes.ReplaceAll(data, []byte("public"), []byte("secret"))
		if err := os.WriteFile(filepath.Join(outside, name), secret, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return tree, outside
}

// TestFileExchangedAfterTheScanIsRefused exchanges files and directories while the first files are packed, after all
// were scanned for secrets.
func TestFileExchangedAfterTheScanIsRefused(t *testing.T) {
	for _, name := range []string{"z/large", "z/small", "z"} {
		for _, kind := range []string{"link", "copy"} {
			t.Run(kind+" "+name, func(t *testing.T) {
				tree, outside := exchangedTree(t)
				target := filepath.Join(outside, strings.TrimPrefix(strings.TrimPrefix(name, "z"), "/"))
				other := filepath.Join(t.TempDir(), "other")
				var err error
				if kind == "link" {
					err = os.Symlink(target, other)
				} else {
					err = os.CopyFS(other, os.DirFS(outside))
					other = filepath.Join(other, strings.TrimPrefix(strings.TrimPrefix(name, "z"), "/"))
				}
				if err != nil {
					t.Fatal(err)
				}
				once := sync.OnceFunc(func() { exchange(t, filepath.Join(tree, name), other) })
				var b bytes.Buffer
				_, err = packaging.Build(t.Context(), tree, &b, packaging.Options{Progress: func(int64, int64) { once() }})
				if !errors.Is(err, seen.ErrChanged) || !strings.HasPrefix(err.Error(), "z/") ||
					!strings.Contains(diag.HintOf(err), "build from a copy that only you can change") {
					t.Errorf("error is %v (hint %q), want one about the exchanged file", err, diag.HintOf(err))
				}
			})
		}
	}
}

// TestFileWrittenAfterTheScanIsRefused writes other bytes of the same length.
func TestFileWrittenAfterTheScanIsRefused(t *testing.T) {
	for _, name := range []string{"z/large", "z/small"} {
		tree, outside := exchangedTree(t)
		data, err := os.ReadFile(filepath.Join(outside, filepath.Base(name)))
		if err != nil {
			t.Fatal(err)
		}
		once := sync.OnceFunc(func() {
			if err := os.WriteFile(filepath.Join(tree, name), data, 0o644); err != nil {
				t.Error(err)
			}
		})
		var b bytes.Buffer
		_, err = packaging.Build(t.Context(), tree, &b, packaging.Options{Progress: func(int64, int64) { once() }})
		if !errors.Is(err, seen.ErrChanged) || !strings.HasPrefix(err.Error(), name+" ") {
			t.Errorf("error is %v, want one about %s", err, name)
		}
	}
}
