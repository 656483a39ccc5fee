package accounts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// The limit and the interval of the wait for other processes that change accounts.
const (
	lockTimeout  = 2 * time.Minute
	lockInterval = 50 * time.Millisecond
)

// awaitLock waits until no process holds the lock of the account files (lckpwdf(3)). The tools take it
// themselves but give up after seconds, which is too short if a package creates many accounts.
func awaitLock(ctx context.Context, files host.Files) error {
	done, err := holdLock(ctx, files)
	if err == nil {
		done()
	}
	return err
}

// holdLock keeps the account tools from changing accounts until done is called. A read lock is enough, since the tools
// take a write lock.
func holdLock(ctx context.Context, files host.Files) (done func(), err error) {
	f, err := files.Open("/etc/.pwd.lock")
	if err != nil {
		return func() {}, nil // there is no lock file, or the tool reports why it cannot use it
	}
	done = func() { _ = f.Close() }
	descriptor, ok := f.(interface{ Fd() uintptr })
	if !ok {
		return done, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	for {
		shared := unix.Flock_t{Type: unix.F_RDLCK}
		err := unix.FcntlFlock(descriptor.Fd(), unix.F_OFD_SETLK, &shared)
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES) {
			return done, nil // held until the file is closed; some kernels have no such locks
		}
		select {
		case <-ctx.Done():
			done()
			return nil, diag.Busy.Hint(fmt.Errorf("the account files are locked by another program: %w", ctx.Err()),
				"see who holds it with `fuser /etc/.pwd.lock`")
		case <-time.After(lockInterval):
		}
	}
}
