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

// create makes a new file with its content, mode and time. The name has no slash in it and is not
// followed, so the file cannot lie outside of its directory.
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

// createSmall is create for content that is in memory, with no more system calls than it takes.
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

// open makes an empty file. It has its mode from the start, so that it need not be changed in most
// cases; no other user can enter the directories above it until the release is complete.
func open(in *directoryHandle, e entry) (int, error) {
	for {
		fd, err := unix.Openat(int(in.file.Fd()), path.Base(e.name), unix.O_CREAT|unix.O_EXCL|unix.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC, uint32(e.mode))
		if err == nil {
			return fd, nil
		}
		if !errors.Is(err, unix.EINTR) {
			return -1, &fs.PathError{Op: "create", Path: e.name, Err: err}
		}
	}
}

// dress gives a file its mode, where the process's mask or the directory took some of it away, and its
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

// setTimes is futimens(3), which golang.org/x/sys has no name for: utimensat of an open file and of
// no path.
func setTimes(fd int, at time.Time) error {
	spec := unix.NsecToTimespec(at.UnixNano())
	times := [2]unix.Timespec{spec, spec}
	_, _, errno := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(fd), 0, uintptr(unsafe.Pointer(&times)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// earlyPiece is how many new bytes of a file cause the kernel to be asked to write them.
const earlyPiece = 8 << 20

// early tells the kernel to write a large file out while the rest of it still comes, so that the sync
// at the end finds little to do. It only tells: what is durable is up to that sync.
type early struct {
	done  int64
	told  int64
	upTo  chan int64
	ended chan struct{}
}

// startEarly watches a file that will have so many bytes; nil where it is too small to matter.
func startEarly(f *os.File, size int64) *early {
	if size < earlyPiece {
		return nil
	}
	e := &early{upTo: make(chan int64, 1), ended: make(chan struct{})}
	go func() {
		defer close(e.ended)
		from := int64(0)
		for to := range e.upTo {
			// A filesystem that cannot has all to do at the end.
			_ = unix.SyncFileRange(int(f.Fd()), from, to-from, unix.SYNC_FILE_RANGE_WRITE)
			from = to
		}
	}()
	return e
}

// Write counts what was written to the file. It never waits for the disk.
func (e *early) Write(p []byte) (int, error) {
	if e == nil {
		return len(p), nil
	}
	if e.done += int64(len(p)); e.done-e.told >= earlyPiece {
		select {
		case e.upTo <- e.done:
			e.told = e.done
		default: // the disk is behind, and told when it has caught up
		}
	}
	return len(p), nil
}

// end lets go of the file.
func (e *early) end() {
	if e != nil {
		close(e.upTo)
		<-e.ended
	}
}
