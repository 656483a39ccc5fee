package archive_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// watched records files that are written without a sync, the common sync, and renames.
type watched struct {
	host.Files
	events *[]string
}

func (w watched) Beneath(dir string) (host.Beneath, error) {
	b, err := w.Files.Beneath(dir)
	return watchedBeneath{watched{b, w.events}, b}, err
}

func (w watched) Write(p string, f host.NewFile) error {
	if f.Unsynced {
		*w.events = append(*w.events, "unsynced")
	}
	return w.Files.Write(p, f)
}

func (w watched) Rename(from, to string) error {
	*w.events = append(*w.events, "moved")
	return w.Files.Rename(from, to)
}

type watchedBeneath struct {
	watched
	below host.Beneath
}

func (w watchedBeneath) Free() (bytes, files int64, err error) { return w.below.Free() }
func (w watchedBeneath) Close() error                          { return w.below.Close() }

func (w watchedBeneath) SyncAll() error {
	*w.events = append(*w.events, "synced")
	return w.below.SyncAll()
}

// TestFilesAreSyncedTogether checks that many files are synced together, and before any of them is renamed to
// its final path.
func TestFilesAreSyncedTogether(t *testing.T) {
	for _, files := range []int{3, 40} {
		var items []item
		for i := range files {
			items = append(items, item{name: fmt.Sprint("t/f", i), text: "x"})
		}
		h, dir := hostWith(t, tarOf(items...))
		var events []string
		_, err := extraction(t, h.WithFiles(watched{h.Files, &events}), context.Background())
		if err != nil {
			t.Fatal(err)
		}
		want := "moved"
		if files > 16 {
			want = strings.Repeat("unsynced ", files) + "synced moved"
		}
		if got := strings.Join(events, " "); got != want {
			t.Errorf("%d files: %s", files, got)
		}
		if found, err := os.ReadDir(filepath.Join(dir, "opt/t")); err != nil || len(found) != files {
			t.Errorf("%d files: %d, %v", files, len(found), err)
		}
	}
}

// BenchmarkExtract10000 extracts 10,000 small files below TMPDIR.
func BenchmarkExtract10000(b *testing.B) {
	var items []item
	for i := range 10000 {
		items = append(items, item{name: fmt.Sprintf("t/%d/f%d", i/100, i), text: strings.Repeat("x", 4096)})
	}
	data := tarOf(items...)
	for b.Loop() {
		h, _ := hostWith(b, data)
		if _, err := extraction(b, h, context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}
