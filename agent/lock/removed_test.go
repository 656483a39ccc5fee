package lock_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/lock"
)

// TestLockSurvivesRemovalOfItsFile removes the file of a lock, or its whole directory, while it is held.
func TestLockSurvivesRemovalOfItsFile(t *testing.T) {
	for name, remove := range map[string]func(path string) error{
		"file":      os.Remove,
		"directory": func(path string) error { return os.RemoveAll(filepath.Dir(path)) },
		"replaced":  func(path string) error { return os.WriteFile(path+"2", nil, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "state", "lock")
			first, err := lock.Acquire(path, "deploy")
			if err != nil {
				t.Fatal(err)
			}
			if err := remove(path); err != nil {
				t.Fatal(err)
			}
			if name == "replaced" {
				if err := os.Rename(path+"2", path); err != nil {
					t.Fatal(err)
				}
			}
			var held *lock.Held
			if _, err := lock.Acquire(path, "converge"); !errors.As(err, &held) || held.Holder.Command != "deploy" ||
				held.Holder.PID != os.Getpid() {
				t.Fatalf("a second run beside the first: %v", err)
			}
			if h, is := lock.Current(path); !is || h.Command != "deploy" {
				t.Errorf("the holder is %+v, %v", h, is)
			}
			if h, is := lock.Abandoned(path); is {
				t.Errorf("the active run counts as interrupted: %+v", h)
			}
			var lost atomic.Int32
			stop := first.Watch(func() { lost.Add(1) })
			for end := time.Now().Add(20 * time.Second); lost.Load() == 0 && time.Now().Before(end); {
				time.Sleep(10 * time.Millisecond)
			}
			stop()
			if h, is := lock.Current(path); lost.Load() != 1 || !is || h.Command != "deploy" {
				t.Errorf("after %d checks that found the file removed, the holder is %+v, %v", lost.Load(), h, is)
			}
			if err := first.Release(); err != nil {
				t.Fatal(err)
			}
			second, err := lock.Acquire(path, "converge")
			if err != nil {
				t.Fatalf("after the release: %v", err)
			}
			if err := second.Release(); err != nil {
				t.Error(err)
			}
		})
	}
}
