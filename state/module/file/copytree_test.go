package file

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// growing are files that never end, and that say what size they had when they were opened.
type growing struct{ host.Files }

type endless struct{ size int64 }

func (endless) Read(p []byte) (int, error) { return copy(p, strings.Repeat("x", len(p))), nil }
func (endless) Close() error               { return nil }
func (e endless) Size() int64              { return e.size }

func (growing) Open(string) (io.ReadCloser, error) { return endless{10}, nil }

// TestCopyEndsAtTheSizeThatWasSeen: a user appends to a file for as long as it is copied.
func TestCopyEndsAtTheSizeThatWasSeen(t *testing.T) {
	root := t.TempDir()
	h, err := host.Open(host.Options{Root: root}, host.Caches{})
	if err != nil {
		t.Fatal(err)
	}
	if err := copyContent(h.WithFiles(growing{h.Files}), "/log", "/copy", host.NewFile{UID: -1, GID: -1}); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(root, "copy")); string(data) != strings.Repeat("x", 10) {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}
