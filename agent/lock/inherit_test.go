package lock_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/lock"
)

// dup duplicates the descriptor of f, as the start of a child process with f does.
func dup(t *testing.T, f *os.File) int {
	t.Helper()
	fd, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

func TestInheritedLockStaysHeldAfterClose(t *testing.T) {
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
		t.Errorf("after Close the holder is %+v, %t", h, ok)
	}
}

func TestInheritRefusesOtherDescriptors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	held, err := lock.Acquire(path, "deploy")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release()
	own, err := os.Open(path) // another open file, which does not hold the lock
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	_, err = lock.Inherit(dup(t, own), path)
	var other *lock.Held
	if !errors.As(err, &other) || other.Holder.Command != "deploy" {
		t.Errorf("for the lock file opened a second time: %v", err)
	}
	if _, err := lock.Inherit(dup(t, os.Stderr), path); err == nil {
		t.Error("Inherit accepted a descriptor of another file")
	}
	if _, err := lock.Inherit(999, path); err == nil {
		t.Error("Inherit accepted a descriptor that is not open")
	}
}
