package layout_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

func TestLinksThatLeadOutOfTheTreeAreRefused(t *testing.T) {
	outside := t.TempDir()
	for name, c := range map[string]struct {
		link, target string
		fine         bool
	}{
		"absolute":         {"srv", outside, false},
		"absolute inside":  {"srv", "/data/srv", false}, // without the root, the path is the machine's /data
		"relative inside":  {"srv", "data/srv", true},
		"relative outside": {"srv", "../../" + filepath.Base(outside), false},
		"state":            {"var", outside, false},
		"nowhere":          {"srv", "nowhere", true},
		"a project":        {"srv/projects/shop", outside, false},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for _, dir := range []string{"data/srv/projects", filepath.Dir(c.link)} {
				if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for _, dir := range []string{"projects", "lib/corpus"} {
				if err := os.MkdirAll(filepath.Join(outside, dir), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if c.target == "../../"+filepath.Base(outside) {
				rel, err := filepath.Rel(root, outside)
				if err != nil {
					t.Fatal(err)
				}
				c.target = rel
			}
			if err := os.Symlink(c.target, filepath.Join(root, c.link)); err != nil {
				t.Fatal(err)
			}
			err := layout.At(root).Contained()
			if (err == nil) != c.fine {
				t.Fatalf("error is %v", err)
			}
			if err != nil && (!strings.Contains(err.Error(), "leads out of "+root) || diag.HintOf(err) == "") {
				t.Errorf("error is %v, hint %q", err, diag.HintOf(err))
			}
		})
	}
}

func TestPrivateDirectoryOfAnotherUserIsNotRedirected(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"var/lib/corpus", "etc/corpus"} {
		private := filepath.Join(root, dir)
		if err := os.MkdirAll(private, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(private, 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(private, 0o755) })
	}
	if err := layout.At(root).Contained(); err != nil {
		t.Error(err)
	}
}

// TestLinksIntoEmptyDirectoriesOutsideAreRefused checks that a link out of the tree is refused before any file is made
// behind it, whether or not the tree has a directory of the same path.
func TestLinksIntoEmptyDirectoriesOutsideAreRefused(t *testing.T) {
	for _, name := range []string{"srv", "var", "var/lib", "var/lib/corpus", "etc", "etc/corpus", "srv/projects",
		"var/lib/corpus/reports", "srv/projects/shop", "srv/projects/shop/releases"} {
		for _, twin := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				root, outside := t.TempDir(), t.TempDir()
				link := filepath.Join(root, name)
				if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
					t.Fatal(err)
				}
				rel, err := filepath.Rel(filepath.Dir(link), outside)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(rel, link); err != nil {
					t.Fatal(err)
				}
				if twin {
					if err := os.MkdirAll(filepath.Join(root, filepath.Base(outside)), 0o755); err != nil {
						t.Fatal(err)
					}
				}
				err = layout.At(root).Contained()
				if err == nil || !strings.Contains(err.Error(), link+" is behind a link that leads out of "+root) ||
					strings.Count(err.Error(), "leads out") != 1 {
					t.Errorf("error is %v", err)
				}
			})
		}
	}
}

// TestOtherFilesAreNoLinks checks that a file, pipe or socket in the place of a directory is not reported as a link.
func TestOtherFilesAreNoLinks(t *testing.T) {
	for kind, mode := range map[string]uint32{"file": unix.S_IFREG, "pipe": unix.S_IFIFO, "socket": unix.S_IFSOCK} {
		for _, name := range []string{"srv", "srv/projects", "var/lib/corpus", "etc/corpus", "srv/projects/shop"} {
			root := t.TempDir()
			path := filepath.Join(root, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), unix.Mknod(path, mode|0o644, 0)); err != nil {
				t.Fatal(err)
			}
			if err := layout.At(root).Contained(); err != nil && strings.Contains(err.Error(), "link") {
				t.Errorf("a %s as %s: %v", kind, name, err)
			}
		}
	}
}
