package host

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

const (
	reserve    = 16 << 20 // bytes that are left free on a filesystem
	checkEvery = 64 << 20 // bytes that are written before the free space is checked
)

// spaceLimit reads the content of a file, and fails when its filesystem has no space left: a sparse file of a user,
// copied with its holes written out, would fill the disk. Content of a known size is refused before any of it is
// written.
type spaceLimit struct {
	content io.Reader
	file    *os.File
	given   int64
	check   int64 // offset at which the free space is checked again
}

func withinSpace(file *os.File, content io.Reader) (io.Reader, error) {
	l := &spaceLimit{content: content, file: file, check: checkEvery}
	if size := SizeOf(content); size > checkEvery {
		_, err := l.fits(size)
		return l, err
	}
	return l, nil
}

func (l *spaceLimit) Read(p []byte) (int, error) {
	n, err := l.content.Read(p)
	if l.given += int64(n); l.given < l.check {
		return n, err
	}
	left, full := l.fits(0)
	if full != nil {
		return 0, full
	}
	l.check = l.given + min(left, checkEvery)
	return n, err
}

// fits returns the number of bytes that may be written before the free space must be checked again. It returns an error
// if that is less than bytes.
func (l *spaceLimit) fits(bytes int64) (left int64, err error) {
	space, err := walk.SpaceFor(l.file)
	if err != nil {
		return 0, err
	}
	if left = space.For(os.Geteuid()) - reserve; left < bytes {
		return 0, fmt.Errorf("its %d bytes are more than the filesystem has left, with %d MiB to spare: %w",
			max(bytes, l.given), reserve>>20, unix.ENOSPC)
	}
	return left, nil
}
