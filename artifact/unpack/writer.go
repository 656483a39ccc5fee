package unpack

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
)

// Small files are read into memory and written by several workers: their cost is system calls, not bytes. Workers get
// many at once, since waking a worker costs as much as writing a file, and since neighbors in one directory would wait
// for each other. Larger files
// are written while they are read.
const (
	smallFile  = 128 << 10
	batchBytes = 2 * smallFile
	batchFiles = 64
	batches    = 12 // in memory at once: 3 MiB
)

// directoryHandle is an open directory in which files are made. It is closed when the last file in
// it is complete.
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

// batch is small files for one worker. Their content is in its memory, which is reused.
type batch struct {
	jobs   []job
	memory []byte
}

// room returns memory for one more file, or nil if the batch is full.
func (b *batch) room(size int64) []byte {
	used := len(b.memory)
	if len(b.jobs) == batchFiles || int64(cap(b.memory)-used) < size {
		return nil
	}
	return b.memory[used : used+int(size)]
}

// writer writes files. Its methods must be called from one goroutine.
type writer struct {
	full    chan *batch
	free    chan *batch
	next    *batch // being filled
	workers sync.WaitGroup
	pending sync.WaitGroup
	mu      sync.Mutex
	err     error
	copyBuf []byte
}

func newWriter() *writer {
	w := &writer{full: make(chan *batch, batches), free: make(chan *batch, batches)}
	for range batches {
		w.free <- &batch{}
	}
	for range min(4, max(2, runtime.GOMAXPROCS(0))) {
		w.workers.Go(w.work)
	}
	return w
}

func (w *writer) work() {
	for b := range w.full {
		for _, j := range b.jobs {
			j.e.listed.Digest = sha256.Sum256(j.content)
			if err := createSmall(j); err != nil {
				w.fail(err)
			}
			j.in.release()
		}
		clear(b.jobs)
		b.jobs, b.memory = b.jobs[:0], b.memory[:0]
		w.free <- b
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

// write makes a file in a directory that the caller has opened. A small file may be written later.
func (w *writer) write(in *directoryHandle, e entry, content io.Reader) error {
	if err := w.failed(); err != nil {
		return err
	}
	if e.size > smallFile {
		return w.large(in, e, content)
	}
	buf := w.room(e.size)
	if _, err := io.ReadFull(content, buf); err != nil {
		return fmt.Errorf("reading %s: %w", e.name, cut(err))
	}
	if err := ended(e, content); err != nil {
		return err
	}
	in.users.Add(1)
	w.next.memory = w.next.memory[:len(w.next.memory)+len(buf)]
	w.next.jobs = append(w.next.jobs, job{e: e, in: in, content: buf})
	return nil
}

// room returns memory for a small file, in the present batch or in the next one.
func (w *writer) room(size int64) []byte {
	if w.next != nil {
		if buf := w.next.room(size); buf != nil {
			return buf
		}
		w.hand()
	}
	w.next = <-w.free
	if w.next.memory == nil {
		w.next.memory = make([]byte, 0, batchBytes)
	}
	return w.next.room(size)
}

// hand passes the present batch to a worker.
func (w *writer) hand() {
	if w.next != nil {
		w.pending.Add(1)
		w.full <- w.next
		w.next = nil
	}
}

// cut returns the error for a file that is shorter than announced.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// ended checks that a file is not longer than announced; reading to the end also makes a zip reader
// verify its checksum.
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
		early := startEarly(f, e.size)
		defer early.end()
		// The wrappers hide methods, so that the copy uses this buffer.
		n, err := io.CopyBuffer(struct{ io.Writer }{io.MultiWriter(f, sum, early)},
			struct{ io.Reader }{io.LimitReader(content, e.size)}, w.copyBuf)
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

// settle waits until all files are written.
func (w *writer) settle() error {
	w.hand()
	w.pending.Wait()
	return w.failed()
}

func (w *writer) close() error {
	err := w.settle()
	close(w.full)
	w.workers.Wait()
	return err
}
