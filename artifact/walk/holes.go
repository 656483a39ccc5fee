package walk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Extent is the next part of a file of some size that has content, from an offset on: start is size where there is
// none. A filesystem that cannot tell has content everywhere.
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
