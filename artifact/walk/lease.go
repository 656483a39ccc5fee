package walk

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Leased is the error for a file that other processes cannot open because of a lease (fcntl(2), F_SETLEASE). The file's
// owner may take a lease at any time. The kernel breaks it some time after another process tried to open the file.
type Leased struct {
	PID int // of the process with the lease; 0 if unknown
}

func (e *Leased) Error() string {
	if e.PID == 0 {
		return "another process holds a lease on it"
	}
	return fmt.Sprintf("process %d holds a lease on it", e.PID)
}

// Unwrap returns the error of the kernel.
func (e *Leased) Unwrap() error { return unix.EAGAIN }

// Hint returns a hint to stop the process.
func (e *Leased) Hint() string {
	if e.PID == 0 {
		return diag.Busy.Coded("find the process in /proc/locks (LEASE) and stop it, and run again")
	}
	return diag.Busy.Coded(fmt.Sprintf("look at the process (ps -fp %[1]d) and stop it (kill %[1]d), and run again",
		e.PID))
}

// patience limits the total time that opens through a root and its copies may wait for leases: a user can take a lease
// on each of many files.
type patience struct{ spent atomic.Int64 }

// longestLease is the maximum time that a root waits for leases, even if the kernel's own limit is longer.
const longestLease = time.Minute

// waitForLease opens a file when its lease has ended. again opens the file, and fails with EAGAIN while there is a
// lease. holder returns the process with the lease, and whether there may be one.
func (p *patience) waitForLease(err error, again func() (int, error), holder func() (pid int, leased bool)) (
	int, error) {
	const pause = 100 * time.Millisecond
	pid, leased := holder()
	if !leased {
		return -1, err
	}
	for limit := leaseTime(); p != nil && p.spent.Add(int64(pause)) <= int64(limit); {
		time.Sleep(pause)
		if fd, err := again(); !errors.Is(err, unix.EAGAIN) {
			return fd, err
		}
	}
	return -1, &Leased{pid}
}

// leaseTime returns the time after which the kernel breaks a lease, and a little more.
func leaseTime() time.Duration {
	text, err := os.ReadFile("/proc/sys/fs/lease-break-time")
	seconds, wrong := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || wrong != nil || seconds <= 0 {
		return longestLease
	}
	return min(time.Duration(seconds)*time.Second+time.Second, longestLease)
}

// holder returns the process that has a lease on a file that is open with O_PATH. Only regular files have leases.
func holder(fd int) (pid int, leased bool) {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return 0, false
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return 0, true
	}
	for line := range strings.Lines(string(locks)) {
		// 1: LEASE  ACTIVE    WRITE 4242 08:01:1234 0 EOF
		if f := strings.Fields(line); len(f) > 5 && f[1] == "LEASE" &&
			strings.HasSuffix(f[5], ":"+strconv.FormatUint(st.Ino, 10)) {
			pid, _ = strconv.Atoi(f[4])
		}
	}
	return max(pid, 0), true
}

// openFile opens a name in an open directory for reading, without waiting for the other end of a pipe.
func (r *Root) openFile(dir int, name string) (int, error) {
	open := func() (int, error) {
		return RetryOpen(func() (int, error) {
			return unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		})
	}
	fd, err := open()
	if !errors.Is(err, unix.EAGAIN) {
		return fd, err
	}
	return r.patience.waitForLease(err, open, func() (int, bool) {
		at, err := RetryOpen(func() (int, error) {
			return unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		})
		if err != nil {
			return 0, false
		}
		defer unix.Close(at)
		return holder(at)
	})
}

// pastLease is like openat for a file on which a process may have a lease.
func (r *Root) pastLease(p string, flags int) (int, error) {
	fd, err := r.openat(p, flags)
	if !errors.Is(err, unix.EAGAIN) || flags&unix.O_PATH != 0 {
		return fd, err
	}
	return r.patience.waitForLease(err, func() (int, error) { return r.openat(p, flags) }, func() (int, bool) {
		at, err := r.openat(p, flags&unix.O_NOFOLLOW|unix.O_PATH|unix.O_CLOEXEC)
		if err != nil {
			return 0, false
		}
		defer unix.Close(at)
		return holder(at)
	})
}
