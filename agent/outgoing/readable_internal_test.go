package outgoing

import (
	"os"
	"path/filepath"
	"testing"
)

// TestFilesThatEveryUserMayRead looks at files whose way from the root is open or closed, with and without links.
func TestFilesThatEveryUserMayRead(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(top, "root")
	for _, dir := range []string{"root/open/deep", "root/closed", "outside"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for file, mode := range map[string]os.FileMode{"root/open/deep/public": 0o644, "root/open/private": 0o640,
		"root/closed/public": 0o644, "outside/public": 0o644} {
		if err := os.WriteFile(filepath.Join(top, file), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"root/to": "open/deep", "root/toclosed": "closed/public",
		"root/out": "../outside/public", "root/toprivate": "open/private", "root/nowhere": "missing", "other": "root"} {
		if err := os.Symlink(target, filepath.Join(top, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(root, "closed"), 0o750); err != nil {
		t.Fatal(err)
	}
	for _, below := range []string{root, filepath.Join(top, "other")} {
		for file, want := range map[string][2]bool{ // public, there
			"open/deep/public": {true, true}, "open/deep": {true, true}, "open/private": {false, true},
			"closed/public": {false, true}, "closed": {false, true}, "to/public": {true, true}, "toclosed": {false, true},
			"out": {false, true}, "toprivate": {false, true}, "nowhere": {false, false}, "missing/file": {false, false},
		} {
			public, there := readableByAll(below, filepath.Join(below, file))
			if got := [2]bool{public, there}; got != want {
				t.Errorf("%s below %s: public and there are %v, want %v", file, below, got, want)
			}
		}
	}
	if public, there := readableByAll("/", "/"); public != there {
		t.Errorf("the root itself is public: %t, and there: %t", public, there)
	}
	if public, there := readableByAll("/", "/proc/version"); !public || !there {
		t.Errorf("/proc/version is public: %t, and there: %t", public, there)
	}
}
