package lock_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/lock"
)

// TestAcquireWithoutSpace acquires the lock on a filesystem that is full, and on one that is read-only.
func TestAcquireWithoutSpace(t *testing.T) {
	for _, name := range []string{"full", "read-only"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=16k"); err != nil {
				t.Skipf("this test cannot mount a filesystem: %v", err)
			}
			t.Cleanup(func() {
				if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
					t.Error(err)
				}
			})
			path := filepath.Join(dir, "lock")
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if name == "full" {
				if err := os.WriteFile(filepath.Join(dir, "x"), make([]byte, 1<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
					t.Fatalf("the filesystem is not full: %v", err)
				}
			} else if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
				t.Fatal(err)
			}
			held, err := lock.Acquire(path, "deploy")
			if err != nil {
				t.Fatal(err)
			}
			var other *lock.Held
			if _, err := lock.Acquire(path, "deploy"); !errors.As(err, &other) {
				t.Errorf("a second run gets %v", err)
			}
			if _, ok := lock.Current(path); !ok {
				t.Error("the lock is reported as free")
			}
			if err := held.Release(); err != nil {
				t.Fatal(err)
			}
			again, err := lock.Acquire(path, "deploy")
			if err != nil {
				t.Fatal(err)
			}
			if err := again.Release(); err != nil {
				t.Fatal(err)
			}
		})
	}
}
