package packages

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/outage"
)

// defaultLockWait limits the wait for other processes that use the package manager: an unattended upgrade takes
// minutes, and an open dialog does not end by itself.
const defaultLockWait = 5 * time.Minute

// waitFor waits until no process holds a lock file. apt waits by itself for some of its locks, but not
// in all versions and not for the lock of its indexes, and it does not name the process that holds the lock.
func (a *apt) waitFor(ctx context.Context, file string) error {
	return waitForLock(ctx, a.files, a.lockWait, file)
}

// Settle waits until no other process changes packages, and completes a change that was interrupted. If dpkg cannot
// complete it, the error is *Unfinished.
func Settle(ctx context.Context, h *host.Host) error {
	p, ok := h.Packages.(*Packages)
	if !ok {
		return nil
	}
	a, ok := p.manager.(*apt)
	if !ok {
		return nil
	}
	defer p.Forget()
	_, err := a.settled(host.Applying(ctx))
	return err
}

// waitForOthers waits until no other process changes packages.
func (a *apt) waitForOthers(ctx context.Context) error {
	for _, lock := range []string{"/var/lib/dpkg/lock-frontend", "/var/lib/dpkg/lock", aptArchives + "/lock"} {
		if err := a.waitFor(ctx, lock); err != nil {
			return err
		}
	}
	return nil
}

func waitForLock(ctx context.Context, files host.Files, limit time.Duration, file string) error {
	start := time.Now()
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		holder, held := holderOf(files, file)
		if !held {
			return nil
		}
		if waited := time.Since(start); waited+pause > limit {
			return &Busy{Lock: file, Holder: holder, Waited: waited}
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), &Busy{Lock: file, Holder: holder, Waited: time.Since(start)})
		case <-time.After(pause):
		}
	}
}

// Busy is the error for a package manager that another process has locked for longer than the limit of the wait. It is
// not a failure of the transaction.
type Busy struct {
	Lock   string        // the file that is locked; "" if the package manager does not report it
	Holder string        // a description of the process
	Waited time.Duration // how long
	Err    error         // the message of the package manager; if nil, Error composes one
}

func (b *Busy) Error() string {
	if b.Err != nil {
		return b.Err.Error()
	}
	return fmt.Sprintf("%s is locked by %s, for more than %s now", b.Lock, b.Holder, b.Waited.Round(time.Second))
}

// Hint suggests what to do about the lock.
func (b *Busy) Hint() string {
	if hint := diag.HintOf(b.Err); hint != "" {
		return hint
	}
	return diag.Busy.Coded("wait until it ends, or see what it waits for; the next run tries again")
}

// orPassing returns a *Busy if the output of a package manager says that another process holds its lock, a
// *outage.Error if it did not reach a repository, and otherwise err.
func orPassing(ctx context.Context, locked func(host.Output) bool, out host.Output, err error) error {
	if locked(out) {
		return &Busy{Err: err}
	}
	return outage.Recognize(ctx, out.Stderr+"\n"+out.Stdout, err)
}

// Unfinished is the error for an earlier change of packages that was interrupted and must be completed first. It is not
// a failure of the transaction.
type Unfinished struct {
	output string // of the attempt to complete it; "" if there was none
}

func (u *Unfinished) Error() string {
	if u.output != "" {
		return "dpkg was interrupted while it changed packages, and cannot complete that: " + u.output
	}
	return "dpkg was interrupted while it changed packages"
}

// Hint suggests how to complete the change.
func (*Unfinished) Hint() string {
	return diag.Packages.Coded("run `dpkg --configure -a` on the host and read its output")
}

// holderOf returns a description of the process that holds an fcntl(2) lock on a file. It reports false if there is
// none, or if the file cannot be opened.
func holderOf(files host.Files, file string) (string, bool) {
	f, err := files.Open(file)
	if err != nil {
		return "", false
	}
	defer f.Close()
	descriptor, ok := f.(interface{ Fd() uintptr })
	if !ok {
		return "", false
	}
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(descriptor.Fd(), unix.F_GETLK, &lock); err != nil || lock.Type == unix.F_UNLCK {
		return "", false
	}
	return processName(int(lock.Pid)), true
}

// processName returns a description of a process. The kernel reports 0 or -1 for one in another namespace.
func processName(pid int) string {
	if pid <= 0 {
		return "a process of another container"
	}
	if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err == nil {
		return fmt.Sprintf("%s (process %d)", strings.TrimSpace(string(name)), pid)
	}
	return fmt.Sprintf("process %d", pid)
}
