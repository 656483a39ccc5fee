package lock

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// waitLimit is the timeout of Wait, which is for locks that processes hold only for a moment.
const waitLimit = 30 * time.Second

// Wait locks f, and waits for another process to release it. It is for locks that are held only while one file is
// written. Closing f releases the lock. Wait returns an error after waitLimit, since a stopped process, or the process
// of another user, may hold the lock for ever.
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
			return diag.Busy.Hint(fmt.Errorf("locking %s: another process has held its lock for more than %v", f.Name(), limit),
				"see which process it is (lslocks, fuser -v %s), and let it continue (kill -CONT) or end it", f.Name())
		}
	}
}
