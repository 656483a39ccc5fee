package lock_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/lock"
)

func TestAcquireErrorNamesTheHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "lock")
	first, err := lock.Acquire(path, "deploy")
	if err != nil {
		t.Fatal(err)
	}
	_, err = lock.Acquire(path, "converge")
	var held *lock.Held
	if !errors.As(err, &held) || held.Holder.PID != os.Getpid() || !strings.Contains(err.Error(), `"deploy"`) ||
		held.Hint() == "" {
		t.Errorf("a second run: %v", err)
	}
	if h, ok := lock.Current(path); !ok || h.Command != "deploy" || h.Since.IsZero() {
		t.Errorf("the holder is %+v, %v", h, ok)
	}
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	if h, ok := lock.Current(path); ok {
		t.Errorf("after the release the lock is held by %+v", h)
	}
	second, err := lock.Acquire(path, "converge")
	if err != nil {
		t.Fatalf("after the release: %v", err)
	}
	if err := second.Release(); err != nil {
		t.Error(err)
	}
}

func TestLockOfADeadProcessIsFree(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if err := os.WriteFile(path, []byte(`{"pid": 1, "command": "deploy", "since": "2026-01-02T03:04:05Z"}`),
		0o644); err != nil {
		t.Fatal(err)
	}
	l, err := lock.Acquire(path, "deploy")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
}

func TestHolderOfAnEmptyLockFileIsUnknown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	var held *lock.Held
	if _, err := lock.Acquire(path, "deploy"); !errors.As(err, &held) || held.Holder.PID != 0 {
		t.Errorf("error is %v, want an unknown holder", err)
	}
}

// TestCurrentDoesNotBlockAcquire calls Current repeatedly while the lock is acquired and released.
func TestCurrentDoesNotBlockAcquire(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	var done atomic.Bool
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for !done.Load() {
				lock.Current(path)
			}
		})
	}
	for range 300 {
		l, err := lock.Acquire(path, "deploy")
		if err != nil {
			t.Errorf("refused: %v", err)
			break
		}
		if err := l.Release(); err != nil {
			t.Error(err)
		}
	}
	done.Store(true)
	readers.Wait()
}

// TestOtherUsersCannotHoldTheLock acquires a lock whose file an older agent made readable for every user.
func TestOtherUsersCannotHoldTheLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := lock.Acquire(path, "deploy")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the lock file has mode %v, %v: a user who can open it can block all runs", info.Mode(), err)
	}
}

// killed writes a lock file as a killed run leaves it, with its holder.
func killed(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(`{"pid": 1, "command": "deploy", "since": "2026-01-02T03:04:05Z"}`),
		0o600); err != nil {
		t.Fatal(err)
	}
}

// TestReadersOfAKilledRunsLockRefuseNoRun reads the lock with each function while runs acquire it after a killed run.
func TestReadersOfAKilledRunsLockRefuseNoRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	var done atomic.Bool
	var readers sync.WaitGroup
	for _, look := range []func(string) (lock.Holder, bool){lock.Current, lock.Abandoned, lock.Taken} {
		readers.Go(func() {
			for !done.Load() {
				look(path)
				time.Sleep(100 * time.Microsecond) // without a pause, readers on a busy machine always hold the lock
			}
		})
	}
	for range 300 {
		killed(t, path)
		l, err := lock.Acquire(path, "deploy")
		if err != nil {
			t.Errorf("refused: %v", err)
			break
		}
		if err := l.Release(); err != nil {
			t.Error(err)
		}
	}
	done.Store(true)
	readers.Wait()
}

// TestASlowReaderRefusesNoRun has a reader hold the lock for long, as on a busy machine.
func TestASlowReaderRefusesNoRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	killed(t, path)
	reader, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(reader.Fd()), syscall.LOCK_SH); err != nil {
		t.Fatal(err)
	}
	if h, held := lock.Taken(path); held {
		t.Errorf("the lock of a killed run is held by %+v", h)
	}
	time.AfterFunc(time.Second, func() { _ = reader.Close() })
	l, err := lock.Acquire(path, "deploy")
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
}
