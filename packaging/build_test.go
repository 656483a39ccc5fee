package packaging_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/packaging"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// writeTree writes the same tree, with the files in the given order.
func writeTree(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("content of "+name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func build(t *testing.T, tree string, o packaging.Options) ([]byte, packaging.Summary) {
	t.Helper()
	var b bytes.Buffer
	s, err := packaging.Build(context.Background(), tree, &b, o)
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), s
}

// TestProcessorsDoNotChangeTheBytes packs files that are read ahead, and some that are not, on one processor and on
// several.
func TestProcessorsDoNotChangeTheBytes(t *testing.T) {
	dir := t.TempDir()
	for i := range 300 {
		data := bytes.Repeat([]byte(strings.Repeat("line ", i)), 1+i%7*400)
		if err := os.WriteFile(filepath.Join(dir, strings.Repeat("f", 1+i%90)+string(rune('a'+i%26))), data,
			0o644); err != nil {
			t.Fatal(err)
		}
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	one, _ := build(t, dir, packaging.Options{})
	for _, processors := range []int{2, 8} {
		runtime.GOMAXPROCS(processors)
		if several, _ := build(t, dir, packaging.Options{}); !bytes.Equal(one, several) {
			t.Errorf("with %d processors, the bytes differ from those with one", processors)
		}
	}
}

func TestSameTreeGivesSameBytes(t *testing.T) {
	a, b := writeTree(t, "x", "dir/y", "dir/z"), writeTree(t, "dir/z", "x", "dir/y")
	for _, tree := range []string{a, b} {
		if err := os.Symlink("dir/y", filepath.Join(tree, "link")); err != nil {
			t.Fatal(err)
		}
	}
	old := time.Now().Add(-1000 * time.Hour)
	if err := errors.Join(
		os.Chtimes(filepath.Join(b, "x"), old, old), os.Chmod(filepath.Join(b, "x"), 0o600),
		os.Chmod(filepath.Join(b, "dir"), 0o700),
	); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(filepath.Join(b, "x"), 12345, 12345); err != nil {
			t.Fatal(err)
		}
	}
	mask := syscall.Umask(0o077)
	first, summary := build(t, a, packaging.Options{})
	syscall.Umask(mask)
	second, _ := build(t, b, packaging.Options{})
	if !bytes.Equal(first, second) {
		t.Error("two trees that differ only in owner, time, mode bits and order give different bytes")
	}
	if summary.Files != 5 {
		t.Errorf("%d entries were packed, want 5", summary.Files)
	}
	if err := os.Chmod(filepath.Join(b, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if third, _ := build(t, b, packaging.Options{}); bytes.Equal(first, third) {
		t.Error("a file that became executable gives the same bytes")
	}
}

func TestLargeTreesAreReproducibleToo(t *testing.T) {
	dir := t.TempDir()
	noise := make([]byte, 9<<20) // larger than the window
	for i := range noise {
		noise[i] = byte(i * i >> 7)
	}
	if err := os.WriteFile(filepath.Join(dir, "big"), noise, 0o644); err != nil {
		t.Fatal(err)
	}
	first, _ := build(t, dir, packaging.Options{})
	for range 3 {
		if again, _ := build(t, dir, packaging.Options{}); !bytes.Equal(first, again) {
			t.Fatal("the same tree gave different bytes")
		}
	}
}

func TestGitAndTheArtifactItselfAreLeftOut(t *testing.T) {
	dir := writeTree(t, "app", ".git/config", "sub/.git/config", "out.tar.zst")
	_, s := build(t, dir, packaging.Options{Skip: filepath.Join(dir, "out.tar.zst")})
	if got := strings.Join(s.LeftOut, " "); got != ".git out.tar.zst sub/.git" {
		t.Errorf("the excluded files are %q", got)
	}
}

func TestBuildReportsAllRefusedFiles(t *testing.T) {
	dir := writeTree(t, "app")
	if err := errors.Join(
		os.Symlink("/etc/passwd", filepath.Join(dir, "absolute")), os.Symlink("../outside", filepath.Join(dir, "outside")),
		syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644),
	); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	_, err := packaging.Build(context.Background(), dir, &b, packaging.Options{})
	var list diag.List
	if !errors.As(err, &list) || len(list) != 3 || b.Len() != 0 {
		t.Errorf("error is %v with %d bytes written, want three problems and nothing written", err, b.Len())
	}
}

func TestFileInPlaceOfATreeIsAnError(t *testing.T) {
	dir := writeTree(t, "app")
	var b bytes.Buffer
	if _, err := packaging.Build(context.Background(), filepath.Join(dir, "app"), &b, packaging.Options{}); err == nil ||
		diag.HintOf(err) == "" {
		t.Errorf("error is %v, want one with a hint", err)
	}
	if _, err := packaging.Build(context.Background(), filepath.Join(dir, "absent"), &b, packaging.Options{}); err == nil {
		t.Error("a missing tree was packed")
	}
}
