package walk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Beneath opens a directory of the root as a new Root that follows no links: a path that contains or ends in a link
// fails with ELOOP. The path of the directory itself is walked by the rules of safe roots, even if r is not safe. The
// new root stays with the directory if that is renamed. The caller must close it.
func (r *Root) Beneath(path string) (*Root, error) {
	careful := *r
	careful.safe = true
	fd, err := careful.Openat(path, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return nil, pathError("open", path, err)
	}
	below := &Root{dir: os.NewFile(uintptr(fd), path), kernel: r.kernel, noLinks: true, safe: r.safe, top: r.top,
		base: r.base, patience: r.patience, self: r.self, trusted: r.trusted, members: r.members}
	if below.name, err = os.Readlink(Handle(fd)); err != nil {
		return nil, errors.Join(err, below.Close())
	}
	return below, nil
}

// Free returns the number of bytes that the program can still write to the root's filesystem, and the number of files
// that it can make there.
func (r *Root) Free() (bytes, files int64, err error) {
	s, err := SpaceFor(r.dir)
	return s.For(r.self), s.Files, err
}
