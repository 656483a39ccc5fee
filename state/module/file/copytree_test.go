package file

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// growing holds files whose content never ends although they report a size.
type growing struct{ host.Files }

type endless struct{ size int64 }

func (endless) Read(p []byte) (int, error) { return copy(p, strings.Repeat("x", len(p))), nil }
func (endless) Close() error               { return nil }
func (e endless) Size() int64              { return e.size }

func (growing) Open(string) (io.ReadCloser, error) { return endless{10}, nil }

// TestCopyOfAGrowingFileEnds copies a file that a user appends to during the copy.
func TestCopyOfAGrowingFileEnds(t *testing.T) {
	root := t.TempDir()
	h, err := host.Open(host.Options{Root: root}, host.Caches{})
	if err != nil {
		t.Fatal(err)
	}
	if err := copyContent(t.Context(), h.WithFiles(growing{h.Files}), "/log",
		"/copy", host.NewFile{UID: -1, GID: -1}); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(root, "copy")); string(data) != strings.Repeat("x", 10) {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}

// huge is a source that is larger than any file system. A read of it fails the test.
type huge struct {
	Sources
	t *testing.T
}

func (h huge) Open(context.Context, string, string) (Source, error) {
	return Source{ReadCloser: unread{endless{1 << 60}, h.t}}, nil
}

type unread struct {
	endless
	t *testing.T
}

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the source was read")
	return 0, io.ErrUnexpectedEOF
}

// TestSourceLargerThanTheDiskIsRefused opens a sparse source, which can have any size without taking room on the
// disk.
func TestSourceLargerThanTheDiskIsRefused(t *testing.T) {
	root := t.TempDir()
	var st unix.Statfs_t
	if err := unix.Statfs(root, &st); err != nil || st.Blocks == 0 {
		t.Skip("the filesystem has no size:", err)
	}
	h, err := host.Open(host.Options{Root: root}, host.Caches{})
	if err != nil {
		t.Fatal(err)
	}
	f := &family{Inputs: Inputs{Sources: huge{t: t}}}
	source, err := f.open(t.Context(), origin{url: "/log"})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Files.Write("/copy", host.NewFile{Content: source, UID: -1, GID: -1}); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("got %v", err)
	}
}
