package durable

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestWriteReplacesOrKeeps(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := WriteFile(path, []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("disk full")
	err := Write(path, 0o600, func(w io.Writer) error {
		_, _ = io.WriteString(w, "tw")
		return broken
	})
	if !errors.Is(err, broken) {
		t.Fatalf("Write: %v, want the error of fill", err)
	}
	expect(t, path, "one")
	if err := WriteFile(path, []byte("two"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, path, "two")
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("%d files in the directory, want 1", len(left))
	}
}

func TestSymlinkReplacesAndKeepsRelativeTarget(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "current")
	for _, target := range []string{"releases/1", "releases/2"} {
		if err := Symlink(target, link); err != nil {
			t.Fatal(err)
		}
		if got, err := os.Readlink(link); err != nil || got != target {
			t.Errorf("Readlink = %q, %v, want %q", got, err, target)
		}
	}
}

func TestSweepRemovesOnlyTemporaryFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"keep", ".hidden", tempPrefix + "123"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Sweep(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 2 {
		t.Errorf("%d files left, want the 2 that are not temporary", len(left))
	}
	if err := Sweep(t.Context(), filepath.Join(dir, "absent")); err != nil {
		t.Errorf("sweeping a missing directory: %v", err)
	}
}

// TestParentsOfPrivateDirectories checks that a private directory does not make the directories above it private, such
// as /var below a new root.
func TestParentsOfPrivateDirectories(t *testing.T) {
	root := t.TempDir()
	if err := MkdirAll(filepath.Join(root, "var/lib/corpus"), 0o700); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]os.FileMode{"var": 0o755, "var/lib": 0o755, "var/lib/corpus": 0o700} {
		info, err := os.Stat(filepath.Join(root, dir))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want mode %v", dir, info, err, want)
		}
	}
}

func TestMkdirAllAndRemoveAreRepeatable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	for range 2 {
		if err := MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := Remove(dir); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDirectoriesHaveTheirModeRegardlessOfTheUmask(t *testing.T) {
	dir := t.TempDir()
	defer syscall.Umask(syscall.Umask(0o077))
	if err := MkdirAll(filepath.Join(dir, "a", "b"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "a/b"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%s is %v, %v", name, info.Mode(), err)
		}
	}
}

func TestDiscardAndInstall(t *testing.T) {
	dir := t.TempDir()
	temp, err := TempDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(temp, "f"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	final := filepath.Join(dir, "release")
	if err := Install(temp, final); err != nil {
		t.Fatal(err)
	}
	expect(t, filepath.Join(final, "f"), "x")
	if err := Discard(t.Context(), final); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("%d entries left of a discarded directory", len(left))
	}
}

// TestInstallSyncsBeforeTheName checks that the filesystem is synced before the directory gets its name and its parent
// after that, and that the directory loses the name if either fails.
func TestInstallSyncsBeforeTheName(t *testing.T) {
	fault := errors.New("the disk failed")
	for name, c := range map[string]struct {
		syncfs, syncDir error
		want            string
		installed       bool
	}{
		"both succeed":                 {want: "filesystem without the name, directory with the name", installed: true},
		"the filesystem is not synced": {syncfs: fault, want: "filesystem without the name"},
		"the directory is not synced":  {syncDir: fault, want: "filesystem without the name, directory with the name"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			temp, err := TempDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			final := filepath.Join(dir, "release")
			var calls []string
			note := func(what string) {
				if _, err := os.Lstat(final); err != nil {
					calls = append(calls, what+" without the name")
					return
				}
				calls = append(calls, what+" with the name")
			}
			err = installer{
				syncfs: func(fd int) error {
					note("filesystem")
					return errors.Join(c.syncfs, unix.Syncfs(fd))
				},
				syncDir: func(parent string) error {
					note("directory")
					return errors.Join(c.syncDir, SyncDir(parent))
				},
			}.install(temp, final)
			if got := strings.Join(calls, ", "); got != c.want || (err == nil) != c.installed {
				t.Errorf("the calls are %s (%v), want %s", got, err, c.want)
			}
			for path, want := range map[string]bool{final: c.installed, temp: !c.installed} {
				if _, err := os.Lstat(path); (err == nil) != want {
					t.Errorf("%s: %v, want it to be there: %v", path, err, want)
				}
			}
		})
	}
}

func expect(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s has %q, %v, want %q", path, got, err, want)
	}
}
