package walk

import (
	"errors"
	"io/fs"
	"strconv"

	"golang.org/x/sys/unix"
)

// Retry repeats a system call while signals interrupt it, and returns its error.
func Retry(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// RetryOpen is like Retry for a call that returns a descriptor.
func RetryOpen(call func() (int, error)) (fd int, err error) {
	err = Retry(func() error { fd, err = call(); return err })
	return fd, err
}

// Readlinkat returns the target of a link: of a name in an open directory, or, if the name is "", of the link that the
// descriptor itself refers to.
func Readlinkat(dir int, name string) (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(dir, name, buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// Handle returns a path to an open descriptor, for system calls that accept only paths. It also works for descriptors
// opened with O_PATH.
func Handle(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// RawMode returns a mode in the kernel's bits: permissions, setuid, setgid and sticky.
func RawMode(mode fs.FileMode) uint32 {
	raw := uint32(mode.Perm())
	if mode&fs.ModeSetuid != 0 {
		raw |= unix.S_ISUID
	}
	if mode&fs.ModeSetgid != 0 {
		raw |= unix.S_ISGID
	}
	if mode&fs.ModeSticky != 0 {
		raw |= unix.S_ISVTX
	}
	return raw
}
