package lock_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/lock"
)

// dup is a descriptor as another process would find it that was lent a file.
func dup(t *testing.T, f *os.File) int {
	t.Helper()
	fd, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

func TestALentLockIsTakenOverAndStaysItsHolders(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	held, err := lock.Acquire(path, "deploy")
	if err != nil {
		t.Fatal(err)
	}
	lent, err := lock.Inherit(dup(t, held.Lend()), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := lent.Close(); err != nil {
		t.Fatal(err)
	}
	if h, ok := lock.Current(path); !ok || h.Command != "deploy" {
		t.Errorf("after the borrower's end %+v holds the lock, %t", h, ok)
	}
}

func TestADescriptorThatNobodyLentIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	held, err := lock.Acquire(path, "deploy")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release()
	own, err := os.Open(path) // as any user may
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	_, err = lock.Inherit(dup(t, own), path)
	var other *lock.Held
	if !errors.As(err, &other) || other.Holder.Command != "deploy" {
		t.Errorf("a descriptor of the lock's file, opened beside its holder: %v", err)
	}
	if _, err := lock.Inherit(dup(t, os.Stderr), path); err == nil {
		t.Error("a descriptor of another file was taken for the lock")
	}
	if _, err := lock.Inherit(999, path); err == nil {
		t.Error("a descriptor that is not open was taken for the lock")
	}
}
