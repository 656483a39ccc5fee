package seen_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/packaging/seen"
)

// tree makes a directory with files, and opens it.
func tree(t *testing.T, names ...string) (string, *seen.Tree) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(name), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	opened, err := seen.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close() })
	return dir, opened
}

func TestWalkHasTheOrderOfWalkDir(t *testing.T) {
	dir, opened := tree(t, "a/z", "a.b", "a/b/c", "c")
	if err := os.Symlink("a", filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	var names []string
	err := opened.Walk(func(e seen.Entry) error {
		names = append(names, e.Name+e.Link)
		return nil
	})
	if want := []string{".", "a", "a/b", "a/b/c", "a/z", "a.b", "ba", "c"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("walked %q (%v), want %q", names, err, want)
	}
}

// TestTreeIsNoLink opens a link to a directory, which a user may have put in the place of the tree.
func TestTreeIsNoLink(t *testing.T) {
	dir, _ := tree(t, "a")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if opened, err := seen.Open(link); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("error is %v, want ENOTDIR", err)
		if err == nil {
			_ = opened.Close()
		}
	}
	opened, err := seen.Open(link + "/") // names the directory
	if err == nil {
		err = opened.Close()
	}
	if err != nil {
		t.Error(err)
	}
}

// TestDirectoryExchangedDuringTheWalkIsNotEntered exchanges a directory, after its name was read and before its content
// is, for a link, a link inside the tree, and another directory.
func TestDirectoryExchangedDuringTheWalkIsNotEntered(t *testing.T) {
	outside, _ := tree(t, "secret")
	for name, put := range map[string]func(at string) error{
		"link":      func(at string) error { return os.Symlink(outside, at) },
		"inside":    func(at string) error { return os.Symlink("a", at) },
		"directory": func(at string) error { return os.Mkdir(at, 0o755) },
		"file":      func(at string) error { return os.WriteFile(at, nil, 0o600) },
		"nothing":   func(string) error { return nil },
	} {
		dir, opened := tree(t, "a/x", "d/y")
		err := opened.Walk(func(e seen.Entry) error {
			switch e.Name {
			case "a/x":
				at := filepath.Join(dir, "d")
				return errors.Join(os.Rename(at, filepath.Join(outside, "old"+name)), put(at))
			case ".", "a", "d":
			default:
				t.Errorf("%s: visited %s", name, e.Name)
			}
			return nil
		})
		if !errors.Is(err, seen.ErrChanged) {
			t.Errorf("%s: error is %v", name, err)
		}
	}
}

// TestOpenRefusesAnotherFile opens files in whose place, or in the place of whose directory, something else is.
func TestOpenRefusesAnotherFile(t *testing.T) {
	outside, _ := tree(t, "y")
	for name, put := range map[string]func(dir string) error{
		"link": func(dir string) error { return os.Symlink(outside+"/y", dir+"/d/y") },
		"same": func(dir string) error { return os.Symlink("z", dir+"/d/y") },
		"copy": func(dir string) error { return os.WriteFile(dir+"/d/y", []byte("d/y"), 0o600) },
		"way": func(dir string) error {
			return errors.Join(os.Rename(dir+"/d", dir+"/moved"), os.Rename(dir+"/moved/z", dir+"/moved/y"),
				os.Symlink("moved", dir+"/d"))
		},
	} {
		dir, opened := tree(t, "d/y")
		var file seen.Entry
		err := opened.Walk(func(e seen.Entry) error { file = e; return nil })
		if err != nil {
			t.Fatal(err)
		}
		f, err := opened.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(f)
		if err := errors.Join(err, f.Unchanged(), f.Close()); err != nil || string(data) != "d/y" {
			t.Errorf("read %q (%v)", data, err)
		}
		if err := errors.Join(os.Rename(dir+"/d/y", dir+"/d/z"), put(dir)); err != nil {
			t.Fatal(err)
		}
		if f, err := opened.Open(file); !errors.Is(err, seen.ErrChanged) {
			t.Errorf("%s: error is %v", name, err)
			if err == nil {
				_ = f.Close()
			}
		}
	}
}
