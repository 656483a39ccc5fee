package trust

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// seenWait is how long a publisher waits for another one that follows the store.
const seenWait = 5 * time.Minute

// lock keeps other publishers with the same directory from following the store at the same time: one
// that keeps a newer snapshot between this one's timestamp and snapshot would make this one believe that
// the store went back in time. The kernel releases the lock of a process that dies. A host needs no lock
// here, since it has one for each run.
func (s seen) lock(ctx context.Context) (unlock func(), err error) {
	if err := durable.MkdirAll(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("keeping what was seen of the store: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(s.dir, ".lock"), os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("keeping what was seen of the store: %w", err)
	}
	late := time.After(seenWait)
	for {
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
			return func() { _ = f.Close() }, nil
		}
		select {
		case <-ctx.Done():
			_ = f.Close() // it was not locked
			return nil, fmt.Errorf("waiting for another publisher with %s: %w", s.dir, context.Cause(ctx))
		case <-late:
			_ = f.Close() // it was not locked
			return nil, diag.WithHint(fmt.Errorf("another publisher with %s has followed the store for more than %v", s.dir, seenWait),
				"see which process it is (lslocks, fuser -v %s), and let it go on (kill -CONT) or end it", f.Name())
		case <-time.After(5 * time.Millisecond):
		}
	}
}
