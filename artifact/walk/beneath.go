package walk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Beneath opens a directory of the root as a Root of its own in which no link is followed: a link on the way of a path,
// or at its end, is ELOOP. The way to the directory itself is walked by the rule of safe roots, whatever r is. The new
// root means the same directory after it was renamed. The caller must close it.
func (r *Root) Beneath(path string) (*Root, error) {
	careful := *r
	careful.safe = true
	fd, err := careful.Openat(path, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return nil, pathError("open", path, err)
	}
	below := &Root{dir: os.NewFile(uintptr(fd), path), kernel: r.kernel, noLinks: true, safe: r.safe, top: r.top, self: r.self, trusted: r.trusted, members: r.members}
	if below.name, err = os.Readlink(Handle(fd)); err != nil {
		return nil, errors.Join(err, below.Close())
	}
	return below, nil
}

// Free is how many bytes the program can still write to the root's filesystem, and how many files it can make there.
// Filesystems that count no files have files < 0.
func (r *Root) Free() (bytes, files int64, err error) {
	var st unix.Statfs_t
	// A descriptor that is a place only cannot be asked by fstatfs(2) before Linux 3.6, and can since.
	if err := Retry(func() error { return unix.Fstatfs(int(r.dir.Fd()), &st) }); err != nil {
		return 0, 0, pathError("statfs", r.name, err)
	}
	avail := st.Bavail
	if r.self == 0 {
		avail = st.Bfree
	}
	files = int64(st.Ffree)
	if st.Files == 0 {
		files = -1
	}
	return int64(avail) * st.Bsize, files, nil
}
