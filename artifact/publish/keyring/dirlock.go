package keyring

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// lockWait is the maximum time that a command waits for another command that creates or moves keys in the same
// directory.
const lockWait = 2 * time.Minute

// Lock creates the ring's directory if it is missing, and waits until no other command creates or moves keys in it. The
// caller must call unlock; the kernel releases the lock of a process that dies. Readers of keys take no lock.
func (r Ring) Lock(ctx context.Context) (unlock func(), err error) {
	if err := durable.MkdirAll(r.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the key directory: %w", err)
	}
	f, err := walk.OpenDir(r.Dir)
	if err != nil {
		return nil, fmt.Errorf("locking the key directory: %w", err)
	}
	if err := waitForLock(ctx, f); err != nil {
		_ = f.Close() // it was not locked
		return nil, fmt.Errorf("locking the key directory %s: %w", r.Dir, err)
	}
	_ = durable.SweepAbandoned(r.Dir) // remove incomplete keys of killed commands
	return func() { _ = f.Close() }, nil
}

func waitForLock(ctx context.Context, f *os.File) error {
	limit := time.After(lockWait)
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil || errors.Is(err, unix.EBADF) || errors.Is(err, unix.ENOLCK) || errors.Is(err, unix.EOPNOTSUPP):
			return nil // some network file systems have no locks for directories
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-limit:
			return diag.Busy.Hint(fmt.Errorf("another command has been making or replacing keys there for more than %v",
				lockWait),
				"wait for the other `corpus keys rotate` to end, or end it, and run the command again")
		case <-time.After(10 * time.Millisecond):
		}
	}
}
