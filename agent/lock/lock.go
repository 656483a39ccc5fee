// Package lock lets one run at a time change a host.
//
// The lock is a flock(2) on a file: the kernel releases it when its holder ends for any reason. The file contains a
// Holder as JSON, so that a refused run can report which process holds the lock.
package lock

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Holder describes the run that holds the lock.
type Holder struct {
	PID     int       `json:"pid"`
	Command string    `json:"command"`
	Since   time.Time `json:"since"`
}

// Held is the error of a lock that another run holds. Holder is zero when that run has not written the file yet.
type Held struct{ Holder Holder }

func (h *Held) Error() string {
	if h.Holder.PID == 0 {
		return "another run holds the lock"
	}
	return fmt.Sprintf("another run holds the lock: %q, process %d, since %s", h.Holder.Command, h.Holder.PID,
		h.Holder.Since.Format(time.RFC3339))
}

// Hint returns what the user can do until the lock is released.
func (h *Held) Hint() string {
	return diag.Busy.Coded("wait for it, or look at it with `corpus-agent status`")
}

// Lock is a lock that this process holds.
type Lock struct {
	path     string
	holder   Holder
	left     Holder // the last holder, if it ended without Release; see Left
	readOnly bool   // the filesystem is read-only, so the file cannot name the holder

	mu    sync.Mutex
	file  *os.File
	older []*os.File // locked files that were removed from path since
}

// Acquire takes the lock in the file at path, which it creates if necessary, and writes command and the process ID to
// the file. It returns a *Held when another run holds the lock. An existing file can also be locked on a filesystem
// that is full or read-only; the file does not name the holder then.
//
// A process that holds the lock of a file that was removed from path still holds the lock: Acquire finds it by its open
// file.
func Acquire(path, command string) (*Lock, error) {
	l := &Lock{path: path, holder: Holder{PID: os.Getpid(), Command: command,
		Since: time.Now().UTC().Truncate(time.Second)}}
	err := l.lockFile()
	if held := new(Held); errors.As(err, &held) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("locking the host: %w", err)
	}
	if holder, alive := ofRemoved(path); alive {
		return nil, errors.Join(&Held{Holder: holder}, l.Release())
	}
	return l, nil
}

// lockFile locks the file that is now at the path, and creates it if necessary.
func (l *Lock) lockFile() error {
	if err := durable.MkdirAll(filepath.Dir(l.path), 0o700); err != nil {
		return err
	}
	for {
		f, readOnly, err := open(l.path)
		if err != nil {
			return err
		}
		if err := l.lockOpen(f, readOnly); err != nil {
			return errors.Join(err, f.Close())
		}
		if isAt(f, l.path) {
			l.file, l.readOnly = f, readOnly
			break
		}
		_ = f.Close() // it was removed between opening and locking
	}
	if err := l.writeHolder(l.holder); err != nil && !cannotWrite(err) {
		return errors.Join(err, l.Release())
	}
	return nil
}

// lockOpen locks an open file.
func (l *Lock) lockOpen(f *os.File, readOnly bool) error {
	// A process that can open the file can lock it, and so block all runs. Older agents let every user read it.
	if err := f.Chmod(0o600); err != nil && !readOnly && !cannotWrite(err) {
		return err
	}
	err := take(f)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return &Held{Holder: read(l.path)}
	}
	if err == nil && l.file == nil {
		l.left = read(l.path)
	}
	return err
}

// Left returns the holder before this one if its process ended without Release; see Abandoned.
func (l *Lock) Left() (Holder, bool) { return l.left, l.left.PID != 0 }

// open opens the lock file. On a read-only filesystem it opens it for reading, which is enough for flock(2).
func open(path string) (f *os.File, readOnly bool, err error) {
	f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_CLOEXEC, 0o600)
	if !errors.Is(err, syscall.EROFS) {
		return f, false, err
	}
	f, err = walk.OpenFile(path)
	if errors.Is(err, os.ErrNotExist) {
		err = &os.PathError{Op: "create", Path: path, Err: syscall.EROFS}
	}
	return f, true, err
}

// cannotWrite reports whether err means that a filesystem is full, broken or read-only. The kernel keeps the lock in
// memory, so such an error does not prevent locking.
func cannotWrite(err error) bool {
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// How long take retries: namelessLimit while a run that is beginning or ending has not yet written its name into the
// file, or removed it; lookLimit while only processes that examine the lock hold it.
const (
	namelessLimit = 500 * time.Millisecond
	lookLimit     = 10 * time.Second
	pause         = 10 * time.Millisecond
)

// take locks f. A process that examines the lock, in Current, Abandoned or Taken, has a shared lock for a moment. It
// does not cause a refusal, whatever process the file names: the name of a killed run stays in the file.
func take(f *os.File) error {
	for begun := time.Now(); ; time.Sleep(pause) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		switch waited := time.Since(begun); {
		case !exclusive(f.Name()):
			if waited > lookLimit {
				return err
			}
		case waited > namelessLimit || read(f.Name()).PID != 0:
			return err
		}
	}
}

// exclusive reports whether a process has an exclusive lock of the file at path, as runs have.
func exclusive(path string) bool {
	f, err := walk.OpenFile(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// writeHolder writes h to the lock file in place: a file renamed over it would be a different lock.
func (l *Lock) writeHolder(h Holder) error {
	if l.readOnly {
		return nil
	}
	data, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err = l.file.WriteAt(data, 0)
	return err
}

// Release releases the lock and empties the file. It does not remove the file: a process may be waiting for its lock.
func (l *Lock) Release() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	if !l.readOnly {
		errs = append(errs, l.file.Truncate(0))
	}
	for _, f := range append(l.older, l.file) {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// Lend returns the open lock file. The caller passes it to a child process that acts on the caller's behalf and calls
// Inherit. The lock stays held, and the caller must not close the file: Release does.
func (l *Lock) Lend() *os.File {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file
}

// Inherited is the lock of another process, which passed it to this process with Lend.
type Inherited struct{ file *os.File }

// Inherit takes a lock that another process passed to this one with Lend as file descriptor fd. The descriptor alone
// proves nothing: it must be open on the file at path, and the kernel must grant the lock to it. The kernel grants it
// if the process that called Lend holds the lock, or if the lock is free; this process then holds it like any other.
// For a descriptor that another process opened itself, Inherit returns a *Held. Inherit sets close-on-exec on fd, so
// child processes do not get it.
func Inherit(fd int, path string) (*Inherited, error) {
	var lent, own unix.Stat_t
	if err := unix.Fstat(fd, &lent); err != nil {
		return nil, fmt.Errorf("taking over the lock: descriptor %d: %w", fd, err)
	}
	if err := unix.Stat(path, &own); err != nil {
		return nil, fmt.Errorf("taking over the lock: %w", err)
	}
	if lent.Dev != own.Dev || lent.Ino != own.Ino {
		return nil, fmt.Errorf("taking over the lock: descriptor %d is not %s", fd, path)
	}
	unix.CloseOnExec(fd)
	err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, &Held{Holder: read(path)}
	}
	if err != nil {
		return nil, fmt.Errorf("taking over the lock: %w", err)
	}
	return &Inherited{file: os.NewFile(uintptr(fd), path)}, nil
}

// Close closes the descriptor. The process that called Lend still holds the lock.
func (i *Inherited) Close() error { return i.file.Close() }

// Current returns the holder of the lock, and whether the lock is held.
func Current(path string) (Holder, bool) {
	if !exclusive(path) {
		return ofRemoved(path)
	}
	return read(path), true
}

// Taken is Current, but waits up to half a second for a run that is beginning or ending, until the file names it or it
// has ended.
func Taken(path string) (Holder, bool) {
	for begun := time.Now(); ; time.Sleep(pause) {
		holder, held := Current(path)
		if !held || holder.PID != 0 || time.Since(begun) > namelessLimit {
			return holder, held
		}
	}
}

// read returns the Holder in the file at path, or a zero Holder if the file cannot be read or decoded.
func read(path string) Holder {
	var h Holder
	if data, err := walk.ReadFile(path); err == nil {
		_ = json.Unmarshal(data, &h) // a file that is just being written counts as unknown
	}
	return h
}
