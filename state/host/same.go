package host

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// Private reports whether not every user may read a file, because of its mode or that of a directory on the way to
// it. A file that does not exist is not private; one whose mode cannot be read is.
func Private(h *Host, name string) bool {
	info, err := h.Files.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err != nil || info.Mode&0o004 == 0 {
		return true
	}
	return InPrivateDirectory(h, name)
}

// InPrivateDirectory reports whether not every user may enter a directory on the way to a path, or whether that cannot
// be read. Directories that do not exist yet are not private.
func InPrivateDirectory(h *Host, name string) bool {
	for dir := path.Dir(name); dir != "/" && dir != "."; dir = path.Dir(dir) {
		info, err := h.Files.Stat(dir)
		if !errors.Is(err, fs.ErrNotExist) && (err != nil || info.Mode&0o001 == 0) {
			return true
		}
	}
	return false
}

// Same reports whether two contents are equal. It stops at the first difference, and when the context ends. Holes at
// the same offsets in both files are not read, since a sparse file of a user can have any size.
func Same(ctx context.Context, a, b io.Reader) (bool, error) {
	a, b = unwrapped(a), unwrapped(b)
	if one, two := SizeOf(a), SizeOf(b); one > 0 && two > 0 && one != two {
		return false, nil
	}
	one, two := wholeFile(a), wholeFile(b)
	if one == nil || two == nil {
		return sameStreams(Bounded(ctx, a), Bounded(ctx, b))
	}
	if sameFile(one, two) {
		return true, nil
	}
	c := comparison{ctx: ctx, a: one, b: two, size: SizeOf(a)}
	return c.run()
}

func unwrapped(content io.Reader) io.Reader {
	if w, ok := content.(Wrapped); ok {
		return w.Content()
	}
	return content
}

// wholeFile returns the regular file that content has not read from yet, or nil.
func wholeFile(content io.Reader) *opened {
	switch c := content.(type) {
	case *opened:
		if c.Size() > 0 {
			return c
		}
	case *bounded:
		if c.file != nil && c.size > 0 && !c.begun {
			return c.file
		}
	}
	return nil
}

func sameFile(a, b *opened) bool {
	one, errA := a.Stat()
	two, errB := b.Stat()
	return errA == nil && errB == nil && os.SameFile(one, two)
}

// comparison compares two files of the same size. It skips ranges in which both have holes.
type comparison struct {
	ctx      context.Context
	a, b     *opened
	size     int64
	one, two []byte
}

// block is the number of bytes that are compared at once.
const block = 256 << 10

func (c *comparison) run() (bool, error) {
	c.one, c.two = make([]byte, block), make([]byte, block)
	for at := int64(0); at < c.size; {
		startA, endA := walk.Extent(c.a.File, at, c.size)
		startB, endB := walk.Extent(c.b.File, at, c.size)
		start := min(startA, startB)
		if startA > start {
			endA = startA
		}
		if startB > start {
			endB = startB
		}
		at = min(endA, endB)
		if same, err := c.part(start, at); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

// part compares the bytes of the files from start to end.
func (c *comparison) part(start, end int64) (bool, error) {
	for ; start < end; start += block {
		if err := c.ctx.Err(); err != nil {
			return false, err
		}
		length := min(block, end-start)
		n, errA := c.a.ReadAt(c.one[:length], start)
		m, errB := c.b.ReadAt(c.two[:length], start)
		if err := errors.Join(failed(errA), failed(errB)); err != nil {
			return false, err
		}
		if n != m || int64(n) < length || !bytes.Equal(c.one[:n], c.two[:n]) { // a file truncated meanwhile differs
			return false, nil
		}
	}
	return true, nil
}

func sameStreams(a, b io.Reader) (bool, error) {
	one, two := make([]byte, block), make([]byte, block)
	for {
		n, errA := io.ReadFull(a, one)
		m, errB := io.ReadFull(b, two)
		if err := errors.Join(failed(errA), failed(errB)); err != nil {
			return false, err
		}
		if !bytes.Equal(one[:n], two[:m]) {
			return false, nil
		}
		if errA != nil || errB != nil {
			return errA != nil && errB != nil, nil
		}
	}
}

// failed returns a read error, or nil for the errors that mark the end of a stream.
func failed(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}
