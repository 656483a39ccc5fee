// Package lock lets one run at a time change a host.
//
// The kernel holds the lock (flock(2)), so it is gone with its holder however that ended. The file
// says in JSON who holds it, for whoever is refused.
package lock

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// Holder is who runs.
type Holder struct {
	PID     int       `json:"pid"`
	Command string    `json:"command"`
	Since   time.Time `json:"since"`
}

// Held says that another run is under way. Holder is zero when it has not written its name yet.
type Held struct{ Holder Holder }

func (h *Held) Error() string {
	if h.Holder.PID == 0 {
		return "another run holds the lock"
	}
	return fmt.Sprintf("another run holds the lock: %q, process %d, since %s", h.Holder.Command, h.Holder.PID, h.Holder.Since.Format(time.RFC3339))
}

// Hint says what to do meanwhile.
func (h *Held) Hint() string { return "wait for it, or look at it with `corpus-agent status`" }

// Lock is a lock that is held.
type Lock struct {
	file     *os.File
	readOnly bool // the filesystem is read-only, so the file does not say who holds the lock
}

// Acquire takes the lock, or fails with a *Held at once. A file that exists can be locked on a filesystem that is full or
// read-only: the file does not name the holder then.
func Acquire(path, command string) (*Lock, error) {
	if err := durable.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("locking the host: %w", err)
	}
	f, readOnly, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("locking the host: %w", err)
	}
	// Any process that can open the file can hold the lock, and so stop all runs. Older agents let every user read it.
	if err := f.Chmod(0o600); err != nil && !noRoom(err) {
		return nil, errors.Join(fmt.Errorf("locking the host: %w", err), f.Close())
	}
	if err := take(f); err != nil {
		defer f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, &Held{Holder: read(path)}
		}
		return nil, fmt.Errorf("locking the host: %w", err)
	}
	l := &Lock{file: f, readOnly: readOnly}
	if err := l.sign(Holder{PID: os.Getpid(), Command: command, Since: time.Now().UTC().Truncate(time.Second)}); err != nil && !noRoom(err) {
		return nil, errors.Join(fmt.Errorf("locking the host: %w", err), l.Release())
	}
	return l, nil
}

// open opens the file of the lock, for reading alone where its filesystem is read-only. flock(2) asks for no more.
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

// noRoom reports whether a disk is full, fails or is read-only. The lock is the kernel's and needs none of it.
func noRoom(err error) bool {
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// take locks a file. A lock that nobody has signed is that of a run which is just beginning or ending,
// or of somebody who only looks, and is worth a short wait.
func take(f *os.File) error {
	const tries, pause = 50, 10 * time.Millisecond
	var err error
	for range tries {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) || read(f.Name()).PID != 0 {
			return err
		}
		time.Sleep(pause)
	}
	return err
}

// sign writes in place: another file under the name would be another lock.
func (l *Lock) sign(h Holder) error {
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

// Release gives the lock up. The file stays, empty: removing it would race with who waits for it.
func (l *Lock) Release() error {
	if l.readOnly {
		return l.file.Close()
	}
	return errors.Join(l.file.Truncate(0), l.file.Close())
}

// Lend is the lock's open file, to be passed on to a process that acts on behalf of its holder and takes
// it with Inherit. Lend does not give the lock up; the file stays the Lock's.
func (l *Lock) Lend() *os.File { return l.file }

// Inherited is the lock of another process, which that has lent to this one.
type Inherited struct{ file *os.File }

// Inherit takes a lock that this process was lent as a file descriptor. The descriptor proves nothing by
// itself: it must be open on the very file at path, and the kernel must grant the lock to it. It does so only
// where its lender holds the lock, or where nobody does, and then this process holds it like any other. A
// descriptor that anybody else opened is refused with a *Held. What this process starts does not get it.
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

// Close closes the descriptor. The lender goes on holding the lock.
func (i *Inherited) Close() error { return i.file.Close() }

// Current tells who runs now, if anybody does.
func Current(path string) (Holder, bool) {
	f, err := walk.OpenFile(path)
	if err != nil {
		return Holder{}, false
	}
	defer f.Close()
	if syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == nil {
		return Holder{}, false
	}
	return read(path), true
}

// Taken tells who keeps another run from starting, if anybody does. Unlike Current it also sees a process that shares
// the lock with those who only look, and is seen by them for a moment in turn.
func Taken(path string) (Holder, bool) {
	f, err := walk.OpenFile(path)
	if err != nil {
		return Holder{}, false
	}
	defer f.Close()
	if take(f) == nil {
		return Holder{}, false
	}
	return read(path), true
}

func read(path string) Holder {
	var h Holder
	if data, err := walk.ReadFile(path); err == nil {
		_ = json.Unmarshal(data, &h) // a holder that is just writing counts as unknown
	}
	return h
}
