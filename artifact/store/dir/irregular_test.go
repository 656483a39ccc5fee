package dir_test

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/dir"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// makeIrregular creates something other than a file at a path, which a user who may write to a store's directory can
// do.
func makeIrregular(t *testing.T, kind, place string) {
	t.Helper()
	var err error
	switch kind {
	case "pipe":
		err = syscall.Mkfifo(place, 0o644)
	case "directory":
		err = os.Mkdir(place, 0o755)
	case "link to nowhere":
		err = os.Symlink("nowhere", place)
	case "socket":
		var l net.Listener
		if l, err = net.Listen("unix", place); err == nil {
			t.Cleanup(func() { _ = l.Close() })
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestDirectoryStoreDoesNotBlockOnPipes runs every operation with something else in place of an object, of its
// directory, of the lock, of a temporary file, or of the store. If an operation blocks, the test ends by its time
// limit.
func TestDirectoryStoreDoesNotBlockOnPipes(t *testing.T) {
	old := time.Now().Add(-time.Hour)
	for _, kind := range []string{"pipe", "directory", "link to nowhere", "socket"} {
		for _, place := range []string{"a/b", "a", "a/.corpus-lock", "a/.corpus-put-x", "."} {
			t.Run(kind+" at "+place, func(t *testing.T) {
				top, err := os.MkdirTemp("", "s") // the path of a socket is short
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = os.RemoveAll(top) })
				at := filepath.Join(top, "store")
				if place != "." {
					if err := os.MkdirAll(filepath.Join(at, filepath.Dir(place)), 0o755); err != nil {
						t.Fatal(err)
					}
				}
				makeIrregular(t, kind, filepath.Join(at, place))
				if kind != "link to nowhere" {
					if err := os.Chtimes(filepath.Join(at, place), old, old); err != nil {
						t.Fatal(err)
					}
				}
				ctx := store.Creating(t.Context())
				s := dir.New(at)
				if r, _, err := s.Get(ctx, "a/b", 0); err == nil {
					_ = r.Close()
					t.Error("an object was read")
				}
				for _, prefix := range []string{"", "a/"} {
					for info, err := range s.List(ctx, prefix) {
						if err == nil {
							t.Errorf("%q is listed", info.Key)
						}
					}
				}
				// a link may lead to a file of the store
				everyWrite(ctx, t, s, place == "a/.corpus-lock" && kind != "link to nowhere")
			})
		}
	}
}

// everyWrite runs all writes, which may fail but must end. If the lock is not a file, the error must have a hint.
func everyWrite(ctx context.Context, t *testing.T, s *dir.Store, locked bool) {
	t.Helper()
	_, err := s.Put(ctx, "a/b", strings.NewReader("x"), 1, store.Condition{IfAbsent: true})
	if locked && (err == nil || !strings.Contains(err.Error(), ".corpus-lock") ||
		!strings.Contains(diag.HintOf(err), "remove it")) {
		t.Errorf("a lock that is not a file gives %v, hint %q", err, diag.HintOf(err))
	}
	_ = s.Delete(ctx, "a/b")
	if r, _, err := s.Get(ctx, "a/b", 0); err == nil {
		_, _ = io.Copy(io.Discard, r)
		_ = r.Close()
	}
}
