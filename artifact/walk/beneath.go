package walk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Beneath opens a directory of the root as a new Root that follows no links: a path that contains or ends in a link
// fails with ELOOP. The path of the directory itself is walked by the rule of safe roots, whatever r is. The new
// root stays with the directory if that is renamed. The caller must close it.
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

// Free returns how many bytes the program can still write to the root's filesystem, and how many files it can make
// there. files is negative on filesystems that do not count files.
func (r *Root) Free() (bytes, files int64, err error) {
	var st unix.Statfs_t
	// Before Linux 3.6, fstatfs(2) failed for descriptors opened with O_PATH.
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
