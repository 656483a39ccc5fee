package host_test

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// sparse creates a file of size bytes that has content only at some offsets.
func sparse(t *testing.T, path string, size int64, content map[int64]string) {
	t.Helper()
	f, err := os.Create(path)
	must(t, err)
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		t.Skip("no file is that large here:", err)
	}
	for at, text := range content {
		_, err := f.WriteAt([]byte(text), at)
		must(t, err)
	}
	if diskUsage(t, path) > 64<<20 {
		t.Skip("the filesystem has no holes")
	}
}

// same compares two files below a root. The time limit is too short for reading their holes.
func same(t *testing.T, f host.Files, a, b string) (bool, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	one, err := f.Open(a)
	must(t, err)
	defer one.Close()
	two, err := f.Open(b)
	must(t, err)
	defer two.Close()
	return host.Same(ctx, one, host.Bounded(ctx, two))
}

// TestHolesAreComparedWithoutReadingThem compares sparse files of terabytes, which a user can make without disk space.
func TestHolesAreComparedWithoutReadingThem(t *testing.T) {
	f, root, _ := rooted(t)
	const size = 1 << 42
	for name, content := range map[string]map[int64]string{
		"one": {0: "word", size / 2: "middle"}, "copy": {0: "word", size / 2: "middle"},
		"zeros": {0: "word", 1 << 20: strings.Repeat("\x00", 1<<20), size / 2: "middle"},
		"other": {0: "word", size / 2: "maddle"}, "end": {0: "word", size / 2: "middle", size - 1: "x"},
	} {
		sparse(t, root+"/etc/"+name, size, content)
	}
	must(t, os.Link(root+"/etc/one", root+"/etc/name"))
	sparse(t, root+"/etc/longer", size+1, map[int64]string{0: "word", size / 2: "middle"})
	for other, want := range map[string]bool{
		"copy": true, "zeros": true, "name": true, "other": false, "end": false, "longer": false,
	} {
		for _, pair := range [][2]string{{"/etc/one", "/etc/" + other}, {"/etc/" + other, "/etc/one"}} {
			if is, err := same(t, f, pair[0], pair[1]); err != nil || is != want {
				t.Errorf("%v: %v, %v", pair, is, err)
			}
		}
	}
}

// TestComparisonStopsWithContext interrupts a comparison.
func TestComparisonStopsWithContext(t *testing.T) {
	f, root, _ := rooted(t)
	for _, name := range []string{"/etc/one", "/etc/two"} {
		must(t, os.WriteFile(root+name, []byte("text"), 0o600))
	}
	one, err := f.Open("/etc/one")
	must(t, err)
	defer one.Close()
	two, err := f.Open("/etc/two")
	must(t, err)
	defer two.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := host.Same(ctx, one, two); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestHolesThatAreReadHaveALimit checks the limit of a reader that has to read holes, as a digest does.
func TestHolesThatAreReadHaveALimit(t *testing.T) {
	f, root, _ := rooted(t)
	sparse(t, root+"/etc/sparse", 1<<42, map[int64]string{1 << 20: "word"})
	in, err := f.Open("/etc/sparse")
	must(t, err)
	defer in.Close()
	bounded := host.Bounded(t.Context(), in)
	if n, err := io.Copy(io.Discard, bounded); err == nil || !strings.Contains(err.Error(), "of holes") || n < 1<<32 {
		t.Errorf("read %d bytes, %v", n, err)
	}
}
