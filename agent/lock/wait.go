package lock

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// waitLimit is how long Wait waits for a lock that its holders need for a moment only.
const waitLimit = 30 * time.Second

// Wait locks a file that processes lock for no longer than it takes to write another one, and the lock ends when that file is closed.
// A process that was stopped, or another user's, may hold it for ever: after a time that is an error.
func Wait(f *os.File) error { return wait(f, waitLimit) }

func wait(f *os.File, limit time.Duration) error {
	for end := time.Now().Add(limit); ; time.Sleep(10 * time.Millisecond) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR):
			return fmt.Errorf("locking %s: %w", f.Name(), err)
		case time.Now().After(end):
			return diag.WithHint(fmt.Errorf("locking %s: another process has held its lock for more than %v", f.Name(), limit),
				"see which process it is (lslocks, fuser -v %s), and let it go on (kill -CONT) or end it", f.Name())
		}
	}
}
