package host_test

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// TestDeepTreesAreRemoved removes trees whose paths are too long for a system call. A user can make such trees.
func TestDeepTreesAreRemoved(t *testing.T) {
	for name, c := range map[string]struct{ levels, length int }{"deep": {2500, 1}, "long": {300, 255}} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			at, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY, 0)
			if err != nil {
				t.Fatal(err)
			}
			level := strings.Repeat("d", c.length)
			for range c.levels {
				if err := unix.Mkdirat(at, level, 0o755); err != nil {
					t.Fatal(err)
				}
				next, err := unix.Openat(at, level, unix.O_PATH|unix.O_DIRECTORY, 0)
				if err := errors.Join(err, unix.Close(at)); err != nil {
					t.Fatal(err)
				}
				at = next
			}
			fd, err := unix.Openat(at, "file", unix.O_CREAT|unix.O_WRONLY, 0o644)
			if err := errors.Join(err, unix.Close(fd), unix.Close(at)); err != nil {
				t.Fatal(err)
			}
			h, err := host.Open(host.Options{Root: root}, host.Caches{})
			if err != nil {
				t.Fatal(err)
			}
			if err := h.Files.RemoveAll("/" + level); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Lstat(root + "/" + level); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("it is still there: %v", err)
			}
		})
	}
}

// countingRecorder counts the subjects that it receives.
type countingRecorder struct{ subjects int }

func (c *countingRecorder) Replacing(host.Subject) error { c.subjects++; return nil }

func (c *countingRecorder) Kept() error { return nil }

// TestDeepTreesAreRecordedInPart checks that the removal of a tree of very many levels records those that are not too
// deep, since a record of a path takes as long as the path has levels.
func TestDeepTreesAreRecordedInPart(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(root+strings.Repeat("/d", 1000), 0o755); err != nil {
		t.Fatal(err)
	}
	recorder := &countingRecorder{}
	h, err := host.Open(host.Options{Root: root, Recorder: recorder}, host.Caches{})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Files.RemoveAll("/d"); err != nil {
		t.Fatal(err)
	}
	if recorder.subjects < 200 || recorder.subjects > 600 {
		t.Errorf("%d subjects were recorded", recorder.subjects)
	}
}
