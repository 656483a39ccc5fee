package serving

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestChangedAt(t *testing.T) {
	dir := t.TempDir()
	link, file := filepath.Join(dir, "current"), filepath.Join(dir, "file")
	if err := os.Symlink("releases/1.0", link); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	target, at, err := changedAt(link)
	if err != nil || target != "releases/1.0" || time.Since(at) > time.Hour || at.IsZero() {
		t.Errorf("a link: %q, %v, %v", target, at, err)
	}
	for _, path := range []string{file, filepath.Join(dir, "missing")} {
		if target, at, err := changedAt(path); err != nil || target != "" || !at.IsZero() {
			t.Errorf("%s: %q, %v, %v", filepath.Base(path), target, at, err)
		}
	}
}
