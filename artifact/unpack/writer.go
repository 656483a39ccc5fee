package unpack

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Small files are read into memory and written by several workers: what takes time about them is
// the system calls, not the bytes. Larger ones are written while they are read.
const (
	smallFile = 128 << 10
	buffers   = 32 // small files in memory at once: 4 MiB
)

// directoryHandle is an open directory that files are made in. It is closed when the last file in
// it is done.
type directoryHandle struct {
	file  *os.File
	users atomic.Int32
}

func (d *directoryHandle) release() {
	if d.users.Add(-1) == 0 {
		_ = d.file.Close() // nothing was written through it
	}
}

// job is a small file to be written.
type job struct {
	e       entry
	in      *directoryHandle
	content []byte
}

// writer writes files. Its methods are for one goroutine.
type writer struct {
	jobs    chan job
	free    chan []byte
	workers sync.WaitGroup
	pending sync.WaitGroup
	mu      sync.Mutex
	err     error
	copyBuf []byte
}

func newWriter() *writer {
	w := &writer{jobs: make(chan job, buffers), free: make(chan []byte, buffers)}
	for range buffers {
		w.free <- nil
	}
	for range min(4, max(2, runtime.GOMAXPROCS(0))) {
		w.workers.Go(w.work)
	}
	return w
}

func (w *writer) work() {
	for j := range w.jobs {
		j.e.listed.Digest = sha256.Sum256(j.content)
		err := create(j.in, j.e, func(f *os.File) error { _, err := f.Write(j.content); return err })
		j.in.release()
		w.free <- j.content[:0]
		if err != nil {
			w.fail(err)
		}
		w.pending.Done()
	}
}

func (w *writer) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
}

func (w *writer) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// write makes a file of a directory that the caller has opened. A small one may be written later.
func (w *writer) write(in *directoryHandle, e entry, content io.Reader) error {
	if err := w.failed(); err != nil {
		return err
	}
	if e.size > smallFile {
		return w.large(in, e, content)
	}
	buf := <-w.free
	if int64(cap(buf)) < e.size {
		buf = make([]byte, smallFile)
	}
	buf = buf[:e.size]
	_, err := io.ReadFull(content, buf)
	if err != nil {
		err = fmt.Errorf("reading %s: %w", e.name, cut(err))
	} else {
		err = ended(e, content)
	}
	if err != nil {
		w.free <- buf[:0]
		return err
	}
	in.users.Add(1)
	w.pending.Add(1)
	w.jobs <- job{e: e, in: in, content: buf}
	return nil
}

// cut is the end of a file that was said to be longer.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// ended checks that a file holds no more than was said; asking for the end also makes a zip reader
// check its sum.
func ended(e entry, content io.Reader) error {
	var more [1]byte
	n, err := content.Read(more[:])
	switch {
	case n > 0:
		return &Hostile{Entry: e.name, Rule: fmt.Sprintf("it is larger than the %d bytes it says", e.size)}
	case err != nil && !errors.Is(err, io.EOF):
		return fmt.Errorf("reading %s: %w", e.name, err)
	}
	return nil
}

func (w *writer) large(in *directoryHandle, e entry, content io.Reader) error {
	if w.copyBuf == nil {
		w.copyBuf = make([]byte, 256<<10)
	}
	sum := sha256.New()
	err := create(in, e, func(f *os.File) error {
		// Hidden methods keep the copy to this buffer.
		n, err := io.CopyBuffer(struct{ io.Writer }{io.MultiWriter(f, sum)}, struct{ io.Reader }{io.LimitReader(content, e.size)}, w.copyBuf)
		if err == nil && n < e.size {
			err = io.ErrUnexpectedEOF
		}
		return err
	})
	if err != nil {
		return err
	}
	e.listed.Digest = [32]byte(sum.Sum(nil))
	return ended(e, content)
}

// settle waits until every file handed over is written.
func (w *writer) settle() error {
	w.pending.Wait()
	return w.failed()
}

func (w *writer) close() error {
	err := w.settle()
	close(w.jobs)
	w.workers.Wait()
	return err
}

// create makes a new file with its content, mode and time. The name has no slash in it and is not
// followed, so the file cannot lie outside of its directory.
func create(in *directoryHandle, e entry, fill func(*os.File) error) (err error) {
	base := path.Base(e.name)
	fd, err := unix.Openat(int(in.file.Fd()), base, unix.O_CREAT|unix.O_EXCL|unix.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return &fs.PathError{Op: "create", Path: e.name, Err: err}
	}
	f := os.NewFile(uintptr(fd), base)
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := fill(f); err != nil {
		return fmt.Errorf("writing %s: %w", e.name, err)
	}
	if err := unix.Fchmod(fd, uint32(e.mode)); err != nil {
		return &fs.PathError{Op: "chmod", Path: e.name, Err: err}
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
