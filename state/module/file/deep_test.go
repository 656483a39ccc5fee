package file

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/descent"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// deepTree returns a host whose /srv contains a tree of the given depth, whose paths may exceed PATH_MAX.
func deepTree(t *testing.T, levels, length int) *host.Host {
	t.Helper()
	root := t.TempDir()
	h, err := host.Open(host.Options{Root: root}, host.Caches{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(root+"/srv", 0o755); err != nil {
		t.Fatal(err)
	}
	at, err := unix.Open(root+"/srv", unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.Repeat("d", length)
	for range levels {
		if err := unix.Mkdirat(at, name, 0o755); err != nil {
			t.Fatal(err)
		}
		next, err := unix.Openat(at, name, unix.O_PATH|unix.O_DIRECTORY, 0)
		if err := errors.Join(err, unix.Close(at)); err != nil {
			t.Fatal(err)
		}
		at = next
	}
	if err := unix.Close(at); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Files.RemoveAll("/srv") }) // the cleanup of t.TempDir cannot remove paths this long
	return h
}

func converge(ctx context.Context, h *host.Host, s interface {
	Check(context.Context, *host.Host) (module.Diff, error)
	Apply(context.Context, *host.Host, module.Diff) (module.Report, error)
}) (module.Diff, error) {
	d, err := s.Check(ctx, h)
	if err == nil && !d.Empty() {
		_, err = s.Apply(ctx, h, d)
	}
	return d, err
}

// TestDeepTrees runs states on trees of a depth that any user can create in a directory of their own.
func TestDeepTrees(t *testing.T) {
	for name, c := range map[string]struct{ levels, length int }{"deep": {1000, 1}, "long": {100, 255}} {
		t.Run(name, func(t *testing.T) {
			h, top := deepTree(t, c.levels, c.length), "/srv/"+strings.Repeat("d", c.length)
			exists := func() bool { _, err := h.Files.Lstat(top); return !errors.Is(err, fs.ErrNotExist) }
			refused := func(err error) {
				t.Helper()
				if err == nil || !strings.Contains(err.Error(), "levels deep") || len(err.Error()) > 500 {
					t.Errorf("got %v", err)
				}
			}

			_, err := converge(t.Context(), h,
				&directory{Name: "/srv", FileMode: module.Mode{Given: true, Bits: 0o600}, Recurse: value.Strings("mode")})
			refused(err)
			refused(copyTree(t.Context(), h, "/srv", "/copy", owner{uid: -1, gid: -1}))
			_, err = converge(t.Context(), h, &pruned{Name: "/srv", Recurse: true})
			refused(err)
			_, err = descent.OutwardLinks(t.Context(), h.Files, "/srv", ".git")
			refused(err)

			tidy := newTidied()
			tidy.Name = "/srv"
			d, err := converge(t.Context(), h, tidy)
			if err != nil || !exists() || len(d.Warnings) != 1 {
				t.Errorf("tidied without rmdirs: %v, %d warnings", err, len(d.Warnings))
			}
			ended, end := context.WithCancel(t.Context())
			end()
			tidy = newTidied()
			tidy.Name, tidy.RemoveDirs = "/srv", true
			if _, err := converge(ended, h, tidy); !errors.Is(err, context.Canceled) || !exists() {
				t.Errorf("in a cancelled run: %v", err)
			}
			if d, err = converge(t.Context(), h, tidy); err != nil || exists() || len(d.Warnings) != 0 {
				t.Errorf("tidied with rmdirs: %v, %v", err, d.Warnings)
			}
		})
	}
}

// TestDeepTreesAreCleaned removes a tree that is too deep to be read.
func TestDeepTreesAreCleaned(t *testing.T) {
	h := deepTree(t, 1000, 1)
	if _, err := converge(t.Context(), h, &directory{Name: "/srv", cleaning: cleaning{Clean: true}}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Files.Lstat("/srv/d"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the tree still exists: %v", err)
	}
}
