package host_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
)

// holes creates a sparse file of size bytes with a word at its start and one in its middle.
func holes(t *testing.T, path string, size int64) {
	t.Helper()
	f, err := os.Create(path)
	must(t, err)
	defer f.Close()
	for _, at := range []int64{0, size / 2} {
		_, err := f.WriteAt([]byte("word"), at)
		must(t, err)
	}
	must(t, f.Truncate(size))
	if diskUsage(t, path) > size/4 {
		t.Skip("the filesystem has no holes")
	}
}

// diskUsage returns how many bytes a file takes on the disk.
func diskUsage(t *testing.T, path string) int64 {
	t.Helper()
	var st unix.Stat_t
	must(t, unix.Stat(path, &st))
	return st.Blocks * 512
}

// wrapped is content that is read through another reader, as that of a source whose hash is checked.
type wrapped struct{ io.Reader }

func (w wrapped) Size() int64  { return host.SizeOf(w.Reader) }
func (w wrapped) Sparse() bool { return host.Sparse(w.Reader) }

// TestCopiesKeepHoles checks that the copy of a sparse file is sparse. Otherwise a user could fill the disk with a
// sparse file.
func TestCopiesKeepHoles(t *testing.T) {
	const size = 256 << 20
	for name, wrap := range map[string]func(io.Reader) io.Reader{
		"unwrapped": func(r io.Reader) io.Reader { return r },
		"wrapped":   func(r io.Reader) io.Reader { return wrapped{r} },
	} {
		t.Run(name, func(t *testing.T) {
			f, root, _ := rooted(t)
			holes(t, root+"/etc/sparse", size)
			in, err := f.Open("/etc/sparse")
			must(t, err)
			defer in.Close()
			must(t, f.Write("/etc/copy", host.NewFile{Content: wrap(host.Bounded(t.Context(), in)), UID: -1, GID: -1}))
			if is := diskUsage(t, root+"/etc/copy"); is > 1<<20 {
				t.Errorf("the copy of a file without content takes %d bytes", is)
			}
			want, err := os.ReadFile(root + "/etc/sparse")
			must(t, err)
			if got, err := os.ReadFile(root + "/etc/copy"); !bytes.Equal(got, want) {
				t.Errorf("the copy has other content: %d bytes, %v", len(got), err)
			}
		})
	}
}

// TestSparseFilesLargerThanTheDiskAreCopied copies a file whose holes are larger than the disk.
func TestSparseFilesLargerThanTheDiskAreCopied(t *testing.T) {
	f, root, _ := rooted(t)
	const size = 1 << 43
	must(t, os.WriteFile(root+"/etc/sparse", []byte("word"), 0o600))
	if err := os.Truncate(root+"/etc/sparse", size); err != nil {
		t.Skip("no file is that large here:", err)
	}
	in, err := f.Open("/etc/sparse")
	must(t, err)
	defer in.Close()
	must(t, f.Write("/etc/copy", host.NewFile{Content: host.Bounded(t.Context(), in), UID: -1, GID: -1}))
	if info, err := os.Stat(root + "/etc/copy"); err != nil || info.Size() != size ||
		diskUsage(t, root+"/etc/copy") > 1<<20 {
		t.Errorf("the copy: %v, %v", info, err)
	}
}

// TestDownloadsWithoutLengthAreBounded reads a device without end.
func TestDownloadsWithoutLengthAreBounded(t *testing.T) {
	m, err := machine.New(host.Options{Root: "/"})
	must(t, err)
	in, err := m.Files.Open("/dev/zero")
	must(t, err)
	defer in.Close()
	if n, err := io.Copy(io.Discard, host.Bounded(t.Context(), in)); err == nil ||
		!strings.Contains(err.Error(), "larger than 256") {
		t.Errorf("%d bytes of /dev/zero, %v", n, err)
	}
	status, err := m.Files.Open("/proc/self/status")
	must(t, err)
	defer status.Close()
	if text, err := io.ReadAll(host.Bounded(t.Context(), status)); err != nil || !bytes.Contains(text, []byte("\nPid:")) {
		t.Errorf("a file of the kernel: %q, %v", text, err)
	}
}

// TestBoundedStopsWithContext interrupts the reading of a file.
func TestBoundedStopsWithContext(t *testing.T) {
	f, root, _ := rooted(t)
	must(t, os.WriteFile(root+"/etc/large", make([]byte, 1<<20), 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	in, err := f.Open("/etc/large")
	must(t, err)
	defer in.Close()
	cancel()
	if err := f.Write("/etc/copy", host.NewFile{Content: host.Bounded(ctx, in), UID: -1, GID: -1}); !errors.Is(err,
		context.Canceled) {
		t.Errorf("got %v", err)
	}
	expectOnly(t, root+"/etc", "large")
}
