package walk

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// mostGiven is the maximum size, in bytes, of a file that ReadGiven reads.
const mostGiven = 64 << 20

// ReadGiven reads a file that a person, a setting or the environment names. It opens the file with OpenGiven.
func ReadGiven(path string) ([]byte, error) {
	f, err := OpenGiven(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, mostGiven+1))
	if err == nil && len(data) > mostGiven {
		err = &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("it has more than %d MiB", mostGiven>>20)}
	}
	return data, err
}

// OpenGiven opens a file that a person, a setting or the environment names. It does not block: a named pipe, a socket
// or a device could make the program wait, or never end, and is an ErrNoFile. It opens /dev/null, and descriptors that
// the program has inherited: /dev/stdin, or the /dev/fd/N of the shell's <(command).
func OpenGiven(path string) (*os.File, error) {
	if fd := inheritedFD(path); fd >= 0 {
		own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: path, Err: err}
		}
		return os.NewFile(uintptr(own), path), nil
	}
	f, err := os.OpenFile(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err == nil && isNull(f) {
		return f, nil
	}
	return Regular(f, err)
}

// inheritedFD returns the number of the file descriptor of this program that a path names; -1 for other paths.
func inheritedFD(path string) int {
	path = filepath.Clean(path)
	if path == "/dev/stdin" {
		return 0
	}
	for _, dir := range []string{"/dev/fd/", "/proc/self/fd/"} {
		number, found := strings.CutPrefix(path, dir)
		if fd, err := strconv.Atoi(number); found && err == nil && fd >= 0 {
			return fd
		}
	}
	return -1
}

// isNull reports whether an open file is /dev/null.
func isNull(f *os.File) bool {
	var st unix.Stat_t
	err := unix.Fstat(int(f.Fd()), &st)
	return err == nil && st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == unix.Mkdev(1, 3)
}
