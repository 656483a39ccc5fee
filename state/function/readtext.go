package function

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// longestFile is the largest size in bytes of a file that a template may read.
const longestFile = 64 << 20

// ReadText reads a regular file. Reading other kinds of files may never end, or block.
func ReadText(h *host.Host, p string) (string, error) {
	info, err := h.Files.Stat(p)
	if err != nil {
		return "", err
	}
	if !info.IsRegular() {
		return "", host.Unlike(p, info, host.AFile, "")
	}
	f, err := h.Files.Open(p)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, longestFile+1))
	if err == nil && len(data) > longestFile {
		err = host.Unsuitable(p, fmt.Errorf("%s is longer than %d MiB", p, longestFile>>20))
	}
	return string(data), err
}

// Absent reports whether an error says that a file does not exist.
func Absent(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// there reports whether a path exists, given the error of a call that looked it up, as Python's os.path.exists
// does: a file in the place of a directory, or a loop of links, means no. Any other error, such as one of the disk
// or of permissions, is returned.
func there(err error) (bool, error) {
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return false, nil
	}
	return walk.Found(err)
}
