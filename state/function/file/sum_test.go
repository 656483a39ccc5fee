package file

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/descent"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestDigestsHaveALimit checks that a file larger than the limit has no digest. A user can make a sparse file of any
// size.
func TestDigestsHaveALimit(t *testing.T) {
	root := t.TempDir()
	sparse := filepath.Join(root, "sparse")
	if err := os.WriteFile(sparse, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := host.Open(host.Options{Root: root}, host.Caches{})
	if err != nil {
		t.Fatal(err)
	}
	o := file{Facts: &function.Facts{Host: h}}
	if sum, err := o.sum(t.Context(), "/sparse", "md5"); err != nil || sum != "9dd4e461268c8034f5c8564e155c67a6" {
		t.Errorf("a short file: %q, %v", sum, err)
	}
	if err := os.Truncate(sparse, mostHashed+1); err != nil {
		t.Skip("no sparse files here:", err)
	}
	if sum, err := o.sum(t.Context(), "/sparse", "md5"); err == nil || !strings.Contains(err.Error(), "larger than 4") {
		t.Errorf("a sparse file: %q, %v", sum, err)
	}
}

// TestDigestStopsWithContext checks that an interrupted run stops the digest of a large file.
func TestDigestStopsWithContext(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "file"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := host.Open(host.Options{Root: root}, host.Caches{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o := file{Facts: &function.Facts{Host: h}}
	if sum, err := o.sum(ctx, "/file", "md5"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %q, %v", sum, err)
	}
}

// TestSkippedDirectoriesAreLogged checks that a template skips directories that are too deep, and that the log names
// them. A user can make directories of any depth.
func TestSkippedDirectoriesAreLogged(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "d", strings.Repeat("x/", descent.MostLevels+5)), 0o700); err != nil {
		t.Fatal(err)
	}
	h, err := host.Open(host.Options{Root: root}, host.Caches{})
	if err != nil {
		t.Fatal(err)
	}
	for name, walk := range map[string]func(file) error{
		"file.find":      func(o file) error { _, err := o.find(t.Context(), "/d", nil, value.NewMap()); return err },
		"file.diskusage": func(o file) error { _, err := o.diskUsage(t.Context(), "/d"); return err },
		"list_files":     func(o file) error { _, err := o.below(t.Context(), "/d"); return err },
	} {
		var log []string
		o := file{Facts: &function.Facts{Host: h, Log: func(level, message string) { log = append(log, level+" "+message) }}}
		if err := walk(o); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if len(log) != 1 || !strings.HasPrefix(log[0], "warning "+name+": /d/x/x/") ||
			!strings.Contains(log[0], "256 levels") {
			t.Errorf("%s writes %q to the log", name, log)
		}
	}
}
