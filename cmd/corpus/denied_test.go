package main

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestDeniedRefreshIsNotRepeated holds that a store which may not be written has another exit code than one that is not
// reached: corpus-refresh@.service repeats the latter.
func TestDeniedRefreshIsNotRepeated(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
	s := newStore(t)
	metadata := s.path("store/metadata")
	if err := os.Chmod(metadata, 0o555); err != nil {
		t.Fatal(err)
	}
	s.expect(2, "refresh", "this user must be allowed to write in")
	s.expect(2, "refresh --rebuild", "this user must be allowed to write in")
	if err := os.Chmod(metadata, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(s.path("store"), s.path("away")); err != nil {
		t.Fatal(err)
	}
	s.expect(5, "refresh", "")
}

// TestUnwritableDirectoryOfWhatWasSeenHasAHint runs commands as a user who owns the keys, and does not own what was
// seen of the store.
func TestUnwritableDirectoryOfWhatWasSeenHasAHint(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may act as another user")
	}
	s := newStore(t)
	s.artifact("one", "1")
	s.expect(0, "publish myapp 1.0 @one.tar.zst --channel testing", "")
	const other = 65534
	keys := s.path("keys")
	entries, err := filepath.Glob(filepath.Join(keys, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(entries, keys) {
		if path == s.path("keys/seen") {
			err = os.Chmod(path, 0o755)
		} else {
			err = os.Chown(path, other, other)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	runtime.LockOSThread() // the user ID for files is a thread's
	defer runtime.UnlockOSThread()
	if err := unix.Setfsuid(other); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Setfsuid(0) }()
	for _, line := range []string{"point myapp production 1.0", "ls", "refresh"} {
		if code := s.run(line); code == 0 {
			t.Errorf("corpus %s: exit code 0\n%s", line, s.out)
		}
		s.expect(s.run(line), line, "hint: this user must be allowed to write in "+s.path("keys/seen"))
	}
}
