package main

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
)

// A command that is refused leaves no keys that a later one would take for those of the role.
func TestRefusalsLeaveNoKeys(t *testing.T) {
	a, b := newStore(t), newStore(t)
	a.artifact("one", "1")
	a.expect(0, "publish myapp 1.0 @one.tar.zst", "")
	own := a.env["CORPUS_STORE"]
	a.env["CORPUS_STORE"] = b.env["CORPUS_STORE"]
	a.expect(4, "keys rotate timestamp", "belong to")
	if left, err := os.ReadDir(a.path("keys/next")); !errors.Is(err, fs.ErrNotExist) && len(left) > 0 {
		t.Errorf("rotate with the wrong store left %v", left)
	}
	a.env["CORPUS_STORE"] = own
	a.move("elsewhere", "keys/snapshot.key")
	a.expect(2, "publish newproj 1.0 @one.tar.zst", "snapshot")
	if _, err := os.Stat(a.path("keys/newproj.key")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the key of a project that was refused is there: %v", err)
	}
}

// A key file that is empty, or that of another role, is listed as what it is.
func TestKeysThatAreNotTheirs(t *testing.T) {
	s := newStore(t)
	s.write("keys/targets.key", "")
	s.copy("keys/root.key", "keys/snapshot.key")
	s.expect(0, "keys ls", "")
	for role, want := range map[string]string{"targets": "damaged", "snapshot": "another key", "root": "open"} {
		for line := range strings.Lines(s.out) {
			if strings.HasPrefix(line, role+" ") && !strings.Contains(line, want) {
				t.Errorf("keys ls lists %q, want %q in it", line, want)
			}
		}
	}
}

// A share that is not mounted is an empty directory, into which nothing is written.
func TestEmptyDirectoryIsNoStoreToRebuild(t *testing.T) {
	s := newStore(t)
	s.artifact("one", "1")
	s.expect(0, "publish myapp 1.0 @one.tar.zst", "")
	if err := os.Rename(s.path("store"), s.path("mounted")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(s.path("store"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"refresh --rebuild", "store init", "refresh"} {
		if code := s.run(line); code == 0 {
			t.Errorf("corpus %s succeeds in an empty directory", line)
		}
	}
	s.expect(2, "refresh --rebuild", "mounted")
	if left := s.names("store"); len(left) > 0 {
		t.Errorf("the directory has %v", left)
	}
}
