package lock_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/lock"
)

// FuzzHolder puts arbitrary bytes into a lock file. They must not decide whether the lock is held, and the next run
// must replace them.
func FuzzHolder(f *testing.F) {
	f.Add([]byte(`{"pid": 1, "command": "deploy", "since": "2026-01-01T00:00:00Z"}`))
	f.Add([]byte(`{"pid": 1e3, "command": null, "since": 5}`))
	f.Add([]byte(`{"pid": -9223372036854775808`))
	f.Add([]byte("\x00\x00"))
	path := filepath.Join(f.TempDir(), "lock")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if h, held := lock.Current(path); held {
			t.Fatalf("a free lock is reported as held by %+v", h)
		}
		mine, err := lock.Acquire(path, "deploy")
		if err != nil {
			t.Fatal(err)
		}
		if h, held := lock.Taken(path); !held || h.PID != os.Getpid() || h.Command != "deploy" {
			t.Errorf("the lock of this process is reported as %+v", h)
		}
		var other *lock.Held
		if second, err := lock.Acquire(path, "deploy"); !errors.As(err, &other) {
			t.Errorf("a second run gets %v, %v", second, err)
		}
		if err := mine.Release(); err != nil {
			t.Fatal(err)
		}
	})
}
