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

// How long and how often to look whether others are done with the accounts.
const (
	lockPatience = 2 * time.Minute
	lockPause    = 50 * time.Millisecond
)

// awaitLock waits until no process holds the lock of the account files (lckpwdf(3)). The tools take it
// themselves but give up after seconds, which is less than a package that makes many accounts needs.
func awaitLock(ctx context.Context, files host.Files) error {
	done, err := holdLock(ctx, files)
	if err == nil {
		done()
	}
	return err
}

// holdLock keeps the tools from changing accounts until it is done. A lock for reading is enough:
// theirs is one for writing.
func holdLock(ctx context.Context, files host.Files) (done func(), err error) {
	f, err := files.Open("/etc/.pwd.lock")
	if err != nil {
		return func() {}, nil // it was never taken, or the tool will say why it cannot
	}
	done = func() { _ = f.Close() }
	descriptor, ok := f.(interface{ Fd() uintptr })
	if !ok {
		return done, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	for {
		shared := unix.Flock_t{Type: unix.F_RDLCK}
		err := unix.FcntlFlock(descriptor.Fd(), unix.F_OFD_SETLK, &shared)
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES) {
			return done, nil // ours until the file is closed; or the kernel has no such locks
		}
		select {
		case <-ctx.Done():
			done()
			return nil, diag.WithHint(fmt.Errorf("the account files are locked by another program: %w", ctx.Err()),
				"see who holds it with `fuser /etc/.pwd.lock`")
		case <-time.After(lockPause):
		}
	}
}
