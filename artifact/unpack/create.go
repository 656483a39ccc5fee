package unpack

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// create makes a new file with its content, mode and time. The name contains no slash and is not
// followed, so the file is always in the directory.
func create(in *directoryHandle, e entry, fill func(*os.File) error) (err error) {
	fd, err := open(in, e)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), path.Base(e.name))
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := fill(f); err != nil {
		return fmt.Errorf("writing %s: %w", e.name, err)
	}
	return dress(fd, e)
}

// createSmall is create for content in memory, with as few system calls as possible.
func createSmall(j job) (err error) {
	fd, err := open(j.in, j.e)
	if err != nil {
		return err
	}
	defer func() {
		if closed := unix.Close(fd); err == nil && closed != nil {
			err = &fs.PathError{Op: "close", Path: j.e.name, Err: closed}
		}
	}()
	for rest := j.content; len(rest) > 0; {
		n, err := unix.Write(fd, rest)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("writing %s: %w", j.e.name, err)
		}
		rest = rest[max(n, 0):]
	}
	return dress(fd, j.e)
}

// open makes an empty file. It gets its mode at once, so that it seldom has to be changed; no other user can enter the
// directories above it until the release is complete.
func open(in *directoryHandle, e entry) (int, error) {
	for {
		fd, err := unix.Openat(int(in.file.Fd()), path.Base(e.name),
			unix.O_CREAT|unix.O_EXCL|unix.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC, uint32(e.mode))
		if err == nil {
			return fd, nil
		}
		if !errors.Is(err, unix.EINTR) {
			return -1, &fs.PathError{Op: "create", Path: e.name, Err: err}
		}
	}
}

// dress sets a file's mode, if the umask or the directory removed some of it, and its
// time.
func dress(fd int, e entry) error {
	var now unix.Stat_t
	if err := unix.Fstat(fd, &now); err != nil {
		return &fs.PathError{Op: "stat", Path: e.name, Err: err}
	}
	if now.Mode&0o7777 != uint32(e.mode) {
		if err := unix.Fchmod(fd, uint32(e.mode)); err != nil {
			return &fs.PathError{Op: "chmod", Path: e.name, Err: err}
		}
	}
	if e.modified.IsZero() {
		return nil
	}
	if err := setTimes(fd, e.modified); err != nil {
		return &fs.PathError{Op: "set the time of", Path: e.name, Err: err}
	}
	return nil
}

// setTimes is futimens(3), which golang.org/x/sys lacks: utimensat of an open file without a path.
func setTimes(fd int, at time.Time) error {
	spec := unix.NsecToTimespec(at.UnixNano())
	times := [2]unix.Timespec{spec, spec}
	_, _, errno := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(fd), 0, uintptr(unsafe.Pointer(&times)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// earlyPiece is the number of new bytes of a file after which the kernel is made to write them.
const earlyPiece = 8 << 20

// early makes the kernel write a large file to disk while the rest of it still arrives, so that the sync at the end is
// short. It does not wait: only that sync makes the file durable.
type early struct {
	done  int64
	asked int64
	upTo  chan int64
	ended chan struct{}
}

// startEarly starts this for a file that will have size bytes; it returns nil for a small one.
func startEarly(f *os.File, size int64) *early {
	if size < earlyPiece {
		return nil
	}
	e := &early{upTo: make(chan int64, 1), ended: make(chan struct{})}
	go func() {
		defer close(e.ended)
		from := int64(0)
		for to := range e.upTo {
			// If the filesystem does not support it, the sync at the end does all the work.
			_ = unix.SyncFileRange(int(f.Fd()), from, to-from, unix.SYNC_FILE_RANGE_WRITE)
			from = to
		}
	}()
	return e
}

// Write counts the bytes that were written to the file. It never waits for the disk.
func (e *early) Write(p []byte) (int, error) {
	if e == nil {
		return len(p), nil
	}
	if e.done += int64(len(p)); e.done-e.asked >= earlyPiece {
		select {
		case e.upTo <- e.done:
			e.asked = e.done
		default: // the disk is slow; the next Write tries again
		}
	}
	return len(p), nil
}

// end waits until the file is no longer used.
func (e *early) end() {
	if e != nil {
		close(e.upTo)
		<-e.ended
	}
}
