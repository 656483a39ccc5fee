package walk

import (
	"errors"

	"golang.org/x/sys/unix"
)

const inRoot = unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS

// maxRaces is the maximum number of times that a path is walked again after a part of it was renamed during the walk.
const maxRaces = 64

// asksKernel reports whether openat2(2) works here. A filter may return any error instead (ENOSYS, EPERM), so
// only success counts.
func (r *Root) asksKernel() bool {
	fd, err := r.openat2(".", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	_ = unix.Close(fd)
	return true
}

// openat2 opens a path by openat2(2), so that the kernel walks it.
func (r *Root) openat2(path string, flags int, resolve uint64) (fd int, err error) {
	return openat2(int(r.dir.Fd()), path, flags, resolve)
}

func openat2(dir int, path string, flags int, resolve uint64) (fd int, err error) {
	how := &unix.OpenHow{Flags: uint64(flags), Resolve: inRoot | resolve}
	for range maxRaces {
		fd, err = RetryOpen(func() (int, error) { return unix.Openat2(dir, path, how) })
		if !errors.Is(err, unix.EAGAIN) {
			break
		}
	}
	return fd, err
}
