package walk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Extent returns the next part of a file of the given size that has content, from offset at on; start is size if there
// is none. If the filesystem does not report holes, the rest of the file is returned.
func Extent(f *os.File, at, size int64) (start, end int64) {
	start, err := unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
	if errors.Is(err, unix.ENXIO) {
		return size, size
	}
	if err != nil {
		return at, size
	}
	if end, err = unix.Seek(int(f.Fd()), start, unix.SEEK_HOLE); err != nil {
		end = size
	}
	return start, min(end, size)
}
