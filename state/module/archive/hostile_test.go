package archive_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/archive"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// extraction runs archive.extracted on a real directory and returns the errors of Check and Apply.
func extraction(t testing.TB, h *host.Host, ctx context.Context, arguments ...any) (check, apply error) {
	t.Helper()
	resource := archive.Functions(served{})["extracted"]()
	arguments = append([]any{"name", "/opt", "source", "/srv/a.tar", "enforce_toplevel", false}, arguments...)
	if _, problems := module.Decode(resource, module.Call{Arguments: value.NewMap(arguments...)}); len(problems) > 0 {
		t.Fatal(problems)
	}
	d, err := resource.Check(ctx, h)
	if err != nil || d.Empty() {
		return err, nil
	}
	_, err = resource.Apply(ctx, h, d)
	return nil, err
}

// hostWith returns a host in a temporary directory with an archive.
func hostWith(t testing.TB, data []byte) (*host.Host, string) {
	t.Helper()
	dir := t.TempDir()
	h, err := machine.New(host.Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"srv", "etc/cron.d", "tmp"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "srv/a.tar"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	return h, dir
}

// names lists the files of a tree.
func names(t *testing.T, dir string) string {
	t.Helper()
	var all []string
	err := filepath.Walk(dir, func(p string, info os.FileInfo, err error) error {
		if err == nil && p != dir {
			all = append(all, strings.TrimPrefix(p, dir+"/"))
		}
		return err
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Join(all, " ")
}

// TestLimits checks that an archive beyond a limit is refused before anything is written, and accepted with a
// larger limit.
func TestLimits(t *testing.T) {
	files := tarOf(item{name: "t/a", text: strings.Repeat("x", 1000)},
		item{name: "t/b", text: strings.Repeat("y", 1000)}, item{name: "t/c/d"})
	for argument, n := range map[string]int{"max_entries": 2, "max_bytes": 1999, "max_depth": 2} {
		t.Run(argument, func(t *testing.T) {
			h, dir := hostWith(t, files)
			err, _ := extraction(t, h, context.Background(), argument, n)
			if err == nil || !strings.Contains(err.Error(), "the archive is refused") {
				t.Errorf("beyond %s: %v, want a refusal", argument, err)
			}
			if left := names(t, filepath.Join(dir, "opt")); left != "" {
				t.Errorf("the refused extraction left %s", left)
			}
			if check, apply := extraction(t, h, context.Background(), argument, n+1); check != nil || apply != nil {
				t.Errorf("at the limit: %v, %v", check, apply)
			}
		})
	}
	h, _ := hostWith(t, files)
	if err, _ := extraction(t, h, context.Background(), "max_bytes", -1); err == nil ||
		!strings.Contains(err.Error(), "max_bytes is -1") {
		t.Errorf("a limit below 0: %v", err)
	}
}

// sparse returns an archive with a file of one terabyte without data.
func sparse(t *testing.T) []byte {
	t.Helper()
	header := make([]byte, 512)
	copy(header, "t/holes")
	copy(header[100:], "0000644\x000000000\x000000000\x00")
	copy(header[124:], "00000000000\x0000000000000\x00")
	header[156] = tar.TypeGNUSparse
	copy(header[257:], "ustar  \x00")
	big := []byte{0x80, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0} // 1 << 40
	copy(header[386:], big)                              // one region of zero bytes at the end
	copy(header[386+12:], "00000000000\x00")
	copy(header[483:], big)
	copy(header[148:], "        ")
	sum := 0
	for _, b := range header {
		sum += int(b)
	}
	copy(header[148:], fmt.Sprintf("%06o\x00 ", sum))
	return append(header, make([]byte, 1024)...)
}

// TestHolesCountTowardsMaxBytes checks that holes count as written bytes, since they are written out, and
// that this happens before the first write.
func TestHolesCountTowardsMaxBytes(t *testing.T) {
	h, dir := hostWith(t, sparse(t))
	err, _ := extraction(t, h, context.Background())
	if err == nil || !strings.Contains(err.Error(), "max_bytes") && !strings.Contains(err.Error(), "hold more than") {
		t.Errorf("a sparse terabyte: %v", err)
	}
	check, apply := extraction(t, h, context.Background(), "max_bytes", 2<<40)
	if check != nil || apply == nil || !strings.Contains(apply.Error(), "the filesystem has") {
		t.Errorf("an allowed sparse terabyte: %v, %v; want an error about the free space", check, apply)
	}
	if left := names(t, filepath.Join(dir, "opt")); left != "" {
		t.Errorf("the refused extraction left %s", left)
	}
}

// TestRatio checks that an archive that grows too much is refused without using much memory.
func TestRatio(t *testing.T) {
	artifacttest.Long(t)
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
	w := tar.NewWriter(z)
	size := int64(256 << 20)
	_ = w.WriteHeader(&tar.Header{Name: "t/zeros", Mode: 0o644, Size: size})
	_, _ = io.CopyN(w, zeros{}, size)
	_, _ = w.Close(), z.Close()
	h, _ := hostWith(t, out.Bytes())
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err, _ := extraction(t, h, context.Background(), "max_ratio", 500)
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "grows more than 500-fold") {
		t.Errorf("%v, want a refusal because of the ratio", err)
	}
	if cost := after.TotalAlloc - before.TotalAlloc; cost > 16<<20 {
		t.Errorf("%d bytes were allocated", cost)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestInterruptedExtractionWritesNothing cancels a run after the list was read, while files are written.
func TestInterruptedExtractionWritesNothing(t *testing.T) {
	items := []item{{name: "t/first", text: "new"}}
	for i := range 50 {
		items = append(items, item{name: fmt.Sprint("t/f", i), text: strings.Repeat("x", 4096)})
	}
	h, dir := hostWith(t, tarOf(items...))
	old := filepath.Join(dir, "opt/t/first")
	if err := os.MkdirAll(filepath.Dir(old), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(old, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	broken := h.WithFiles(&interrupting{Files: h.Files, cancel: cancel})
	check, apply := extraction(t, broken, ctx)
	if check != nil || !errors.Is(apply, context.Canceled) {
		t.Fatalf("%v, %v; want an interruption", check, apply)
	}
	if got := names(t, filepath.Join(dir, "opt")); got != "t t/first" {
		t.Errorf("an interrupted extraction left %s", got)
	}
	if data, err := os.ReadFile(old); err != nil || string(data) != "old" {
		t.Errorf("an interrupted extraction replaced a file: %q, %v", data, err)
	}
}

// interrupting cancels a run while the archive is opened the second time, for extraction.
type interrupting struct {
	host.Files
	cancel func()
	opened int
}

func (b *interrupting) Open(p string) (io.ReadCloser, error) {
	f, err := b.Files.Open(p)
	if b.opened++; b.opened == 2 && err == nil {
		return &interruptingFile{f, b.cancel, 0}, nil
	}
	return f, err
}

type interruptingFile struct {
	io.ReadCloser
	cancel func()
	read   int
}

func (b *interruptingFile) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p[:min(len(p), 512)])
	if b.read += n; b.read > 100_000 {
		b.cancel()
	}
	return n, err
}

// TestForeignLinksAreNotFollowed checks that nothing is extracted through a link of another user, at the target
// itself or below it.
func TestForeignLinksAreNotFollowed(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make files of other users")
	}
	h, dir := hostWith(t, tarOf(item{name: "t/evil", text: "evil"}))
	home := filepath.Join(dir, "home/u")
	for _, err := range []error{
		os.MkdirAll(home, 0o755), os.Symlink("/etc/cron.d", filepath.Join(home, "app")),
		os.Lchown(filepath.Join(home, "app"), 4242, 4242), os.Chown(home, 4242, 4242),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	check, apply := extraction(t, h, context.Background(), "name", "/home/u/app")
	var unsafe *walk.UnsafeError
	if err := errors.Join(check, apply); !errors.As(err, &unsafe) {
		t.Errorf("extracting to a user's link: %v, want a refusal", err)
	}
	if err := os.Symlink("/etc/cron.d", filepath.Join(home, "t")); err != nil {
		t.Fatal(err)
	}
	check, apply = extraction(t, h, context.Background(), "name", "/home/u", "overwrite", true)
	if check == nil && apply == nil {
		t.Error("a link was accepted in the place of a directory of the archive")
	}
	if got := names(t, filepath.Join(dir, "etc")); got != "cron.d" {
		t.Errorf("the extraction wrote %s", got)
	}
}

// linked returns archives by the target of their links, for extraction to /opt.
func linked() (inside, outside map[string][]item) {
	inside = map[string][]item{
		"a library": {{name: "t/lib/libx.so.1", text: "x"}, {name: "t/lib/libx.so", link: "libx.so.1"}},
		"node's bin/npm": {{name: "t/bin/npm", link: "../lib/node_modules/npm/bin/npm-cli.js"},
			{name: "t/lib/node_modules/npm/bin/npm-cli.js", text: "x"}},
		"a JDK's legal/x/LICENSE": {{name: "t/legal/java.base/LICENSE", text: "x"},
			{name: "t/legal/java.xml/LICENSE", link: "../java.base/LICENSE"}},
		"the directory of the archive":        {{name: "t/l", link: "."}, {name: "t/top", link: ".."}},
		"an absolute path in the target":      {{name: "t/a", text: "x"}, {name: "t/l", link: "/opt/t/a"}},
		"a path with .. inside":               {{name: "t/d/a", text: "x"}, {name: "t/l", link: "d/../d/a"}},
		"a missing file":                      {{name: "t/l", link: "run/socket"}},
		"a path outside that a file replaces": {{name: "t/l", link: "/etc"}, {name: "t/l", text: "x"}},
	}
	outside = map[string][]item{
		"with an absolute target":              {{name: "t/conf", link: "/etc"}},
		"with the same prefix":                 {{name: "t/l", link: "/option"}},
		"with ..":                              {{name: "t/l", link: "../../etc"}},
		"with .. from the top":                 {{name: "l", link: ".."}},
		"with a directory and ..":              {{name: "t/d/a", text: "x"}, {name: "t/l", link: "d/../../../etc"}},
		"with .. through a link":               {{name: "t/d/up", link: "../.."}, {name: "t/l", link: "d/up/../etc"}},
		"with .. through a link to its parent": {{name: "t/dot", link: ".."}, {name: "l", link: "t/dot/../etc"}},
		"with .. through two links": {{name: "x/y/z", link: "../.."}, {name: "l", link: "x/y"},
			{name: "m", link: "l/z/../etc"}},
		"with .. through a missing directory": {{name: "t/l", link: "pre/../etc"}},
		"with an absolute target and ..":      {{name: "t/l", link: "/opt/../etc"}},
	}
	return inside, outside
}

// TestOutsideLinks checks that links in an archive must stay in its directory unless the state allows
// others, and that the hint names the argument.
func TestOutsideLinks(t *testing.T) {
	inside, outside := linked()
	for name, items := range inside {
		h, _ := hostWith(t, tarOf(items...))
		if check, apply := extraction(t, h, context.Background()); check != nil || apply != nil {
			t.Errorf("a link to %s: %v, %v", name, check, apply)
		}
	}
	for name, items := range outside {
		for format, data := range map[string][]byte{"tar": tarOf(items...), "zip": zipOf(items...)} {
			h, dir := hostWith(t, data)
			err, _ := extraction(t, h, context.Background(), "archive_format", format)
			if err == nil || !strings.Contains(err.Error(), "which is not below /opt") ||
				!strings.Contains(diag.HintOf(err), "allow_outside_links: True") {
				t.Errorf("a link %s in a %s: %v, want a refusal", name, format, err)
			}
			if left := names(t, filepath.Join(dir, "opt")); left != "" {
				t.Errorf("the refused extraction left %s", left)
			}
			if check, apply := extraction(t, h, context.Background(), "archive_format", format,
				"allow_outside_links", true); check != nil || apply != nil {
				t.Errorf("an allowed link %s in a %s: %v, %v", name, format, check, apply)
			}
		}
	}
	h, _ := hostWith(t, tarOf(outside["with an absolute target"]...))
	if check, apply := extraction(t, h, context.Background(), "options", "--exclude=conf --exclude=none"); check == nil ||
		apply != nil || !strings.Contains(check.Error(), "there is nothing in") {
		t.Errorf("a missing link: %v, %v", check, apply)
	}
}

// slow holds files that take long to read.
type slow struct{ host.Files }

func (s slow) Open(p string) (io.ReadCloser, error) {
	f, err := s.Files.Open(p)
	if err != nil {
		return f, err
	}
	return slowFile{f}, nil
}

type slowFile struct{ io.ReadCloser }

func (s slowFile) Read(p []byte) (int, error) {
	time.Sleep(20 * time.Millisecond)
	return s.ReadCloser.Read(p[:min(len(p), 512)])
}

// TestMaxSeconds checks that reading an archive ends after max_seconds, even if its entries have no content.
func TestMaxSeconds(t *testing.T) {
	var items []item
	for i := range 100 {
		items = append(items, item{name: fmt.Sprintf("t/d%d/", i)})
	}
	h, _ := hostWith(t, tarOf(items...))
	began := time.Now()
	err, _ := extraction(t, h.WithFiles(slow{h.Files}), context.Background(), "max_seconds", 1)
	if err == nil || !strings.Contains(err.Error(), "it takes longer than 1s") ||
		!strings.Contains(diag.HintOf(err), "max_seconds") || time.Since(began) > 10*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}
