package dir

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// lockWait is how long a writer waits for another one, which holds the lock only for a rename.
const lockWait = time.Minute

// lock locks a directory for a change. If that takes longer than limit, the error names the process that holds the
// lock. It polls, since a blocking flock could not be cancelled.
func lock(ctx context.Context, root *os.Root, dir string, limit time.Duration) (unlock func(), err error) {
	f, err := openLock(root, dir)
	if err != nil {
		return nil, err
	}
	if limit <= 0 {
		limit = lockWait
	}
	if asked := store.LockWaitOf(ctx); asked > 0 {
		limit = min(limit, asked)
	}
	moved := store.Moved(ctx)
	moved(limit) // so that the wait ends with the error of this function, not with a timeout
	defer moved(0)
	end := time.Now().Add(limit)
	for wait := time.Millisecond; ; wait = min(2*wait, 20*time.Millisecond) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil // closing unlocks
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			_ = f.Close() // it was not locked
			return nil, fmt.Errorf("locking %s: %w", dir, err)
		}
		if time.Now().After(end) {
			held := fmt.Errorf("%s has held the lock of %s for more than %v", holder(f), path.Join(root.Name(), dir), limit)
			_ = f.Close() // it was not locked
			return nil, diag.Busy.Hint(held,
				"a publisher holds it for a moment only: end that process, or the one that stopped it, and run the command again")
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			_ = f.Close() // it was not locked
			return nil, context.Cause(ctx)
		}
	}
}

// openLock opens the lock file of a directory. Only users who may write to the directory can open it: a user who could
// read it could lock it, and so block every publisher.
func openLock(root *os.Root, dir string) (*os.File, error) {
	name := path.Join(dir, ours+"lock")
	const flags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK | syscall.O_NOCTTY
	f, err := walk.Regular(root.OpenFile(name, os.O_RDWR|os.O_CREATE|flags, 0o600))
	if errors.Is(err, fs.ErrPermission) {
		// An earlier version made it readable for other writers only.
		if theirs, openErr := walk.Regular(root.OpenFile(name, os.O_RDONLY|flags, 0)); openErr == nil {
			return theirs, nil
		}
	}
	if err != nil {
		if errors.Is(err, walk.ErrNoFile) || errors.Is(err, syscall.EISDIR) {
			err = diag.Path.Hint(fmt.Errorf("%s must be a file, since it is the lock of writers", path.Join(root.Name(), name)),
				"remove it; the next writer makes it again")
		}
		return nil, err
	}
	if err := asWritable(root, dir, f); err != nil {
		_ = f.Close() // it was not locked
		return nil, err
	}
	return f, nil
}

// asWritable sets the group and the write permissions of a lock file of this user to those of its directory.
func asWritable(root *os.Root, dir string, f *os.File) error {
	above, err := root.Stat(dir)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	of, known := above.Sys().(*syscall.Stat_t)
	is, knownToo := info.Sys().(*syscall.Stat_t)
	if !known || !knownToo || is.Nlink > 1 || int(is.Uid) != os.Geteuid() && os.Geteuid() != 0 {
		return nil // only its owner can change it
	}
	write := above.Mode().Perm() & 0o022
	want := 0o600 | write | write<<1
	if (of.Uid != is.Uid || of.Gid != is.Gid) && f.Chown(int(of.Uid), int(of.Gid)) != nil {
		// Only root can give a file away; the group matters only if it may write.
		if err := f.Chown(-1, int(of.Gid)); err != nil && of.Gid != is.Gid && write&0o020 != 0 {
			return fmt.Errorf("giving the lock of %s to its group: %w", dir, err)
		}
	}
	if info.Mode().Perm() == want {
		return nil
	}
	return f.Chmod(want)
}

// holder describes the process that holds a lock, if it is on this machine.
func holder(f *os.File) string {
	const unknown = "a process on another machine, or of another user,"
	info, err := f.Stat()
	if err != nil {
		return unknown
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return unknown
	}
	list, err := os.Open("/proc/locks")
	if err != nil {
		return unknown
	}
	defer list.Close()
	file := fmt.Sprintf("%02x:%02x:%d", unix.Major(stat.Dev), unix.Minor(stat.Dev), stat.Ino)
	for lines := bufio.NewScanner(list); lines.Scan(); {
		// 1: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF
		words := strings.Fields(lines.Text())
		if len(words) < 6 || words[1] != "FLOCK" || words[5] != file {
			continue
		}
		name, err := os.ReadFile("/proc/" + words[4] + "/comm")
		if err != nil {
			return "process " + words[4]
		}
		return fmt.Sprintf("process %s (%s)", words[4], strings.TrimSpace(string(name)))
	}
	return unknown
}
