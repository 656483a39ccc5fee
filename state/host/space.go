package host

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

const (
	spared  = 16 << 20 // bytes that are left free on a filesystem
	unasked = 64 << 20 // bytes that are written before the free space is checked
)

// spaceLimit reads the content of a file, and fails when its filesystem has no space left: a sparse file of a user,
// copied with its holes written out, would fill the disk. Content that knows its size is refused before any of it is
// written.
type spaceLimit struct {
	content io.Reader
	file    *os.File
	given   int64
	ask     int64 // offset at which the free space is checked again
}

func withinSpace(file *os.File, content io.Reader) (io.Reader, error) {
	l := &spaceLimit{content: content, file: file, ask: unasked}
	if size := SizeOf(content); size > unasked {
		_, err := l.fits(size)
		return l, err
	}
	return l, nil
}

func (l *spaceLimit) Read(p []byte) (int, error) {
	n, err := l.content.Read(p)
	if l.given += int64(n); l.given < l.ask {
		return n, err
	}
	left, full := l.fits(0)
	if full != nil {
		return 0, full
	}
	l.ask = l.given + min(left, unasked)
	return n, err
}

// fits returns the number of bytes that may be written before the free space must be checked again. It returns an error
// if that is less than bytes.
func (l *spaceLimit) fits(bytes int64) (left int64, err error) {
	space, err := walk.SpaceFor(l.file)
	if err != nil {
		return 0, err
	}
	if left = space.For(os.Geteuid()) - spared; left < bytes {
		return 0, fmt.Errorf("its %d bytes are more than the filesystem has left, with %d MiB to spare: %w",
			max(bytes, l.given), spared>>20, unix.ENOSPC)
	}
	return left, nil
}
