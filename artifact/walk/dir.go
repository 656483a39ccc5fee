package walk

import (
	"errors"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// Dir is an open directory. Its methods take single names in it, never follow a link there, and stay with the
// directory if it is renamed. "." is the directory itself, for operations on which that makes sense.
type Dir struct {
	file *os.File
	root *Root
	path string // the path by which it was opened, for messages
}

func newDir(r *Root, fd int, path string) *Dir {
	return &Dir{file: os.NewFile(uintptr(fd), path), root: r, path: path}
}

// Opened returns an open directory descriptor as a Dir, with the path by which it was opened. The Dir owns the
// descriptor, and the caller must close the Dir.
func (r *Root) Opened(fd int, path string) *Dir { return newDir(r, fd, path) }

// Close closes the directory.
func (d *Dir) Close() error { return d.file.Close() }

// Path returns the path by which the directory was opened. After [Root.Follow] it is the path without links.
func (d *Dir) Path() string { return d.path }

// FD returns the descriptor, for system calls without a method here. It is valid until Close.
func (d *Dir) FD() int { return int(d.file.Fd()) }

// do makes a call for a name and adds the operation and the path to its error.
func (d *Dir) do(op, name string, call func(dir int) error) error {
	err := single(name)
	if err == nil {
		err = Retry(func() error { return call(d.FD()) })
	}
	return pathError(op, path.Join(d.path, name), err)
}

func single(name string) error {
	if name == "" || name == ".." || strings.ContainsAny(name, "/\x00") {
		return unix.EINVAL
	}
	return nil
}

// place opens a name with O_PATH and makes a call on it.
func (d *Dir) place(op, name string, call func(fd int, st *unix.Stat_t) error) error {
	return d.do(op, name, func(dir int) error {
		fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		var st unix.Stat_t
		if err := StatNames(dir, name, fd, &st); err != nil {
			return err
		}
		if err := d.ownName(name, &st); err != nil {
			return err
		}
		return call(fd, &st)
	})
}

// ownName returns an error, in a safe root, for a file that a user may have hard-linked here.
func (d *Dir) ownName(name string, st *unix.Stat_t) error {
	return d.root.OwnName(d.FD(), path.Join(d.path, name), st)
}

// Lstat describes a name itself.
func (d *Dir) Lstat(name string) (st unix.Stat_t, err error) {
	err = d.do("lstat", name, func(dir int) error { return unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	return st, err
}

// Readlink returns the target of a link.
func (d *Dir) Readlink(name string) (target string, err error) {
	err = d.do("readlink", name, func(dir int) error {
		target, err = Readlinkat(dir, name)
		return err
	})
	return target, err
}

// Open opens a file for reading. It does not block on named pipes; a caller that accepts regular files only must check
// Stat.
func (d *Dir) Open(name string) (*os.File, error) {
	var f *os.File
	err := d.do("open", name, func(dir int) error {
		fd, err := d.root.openFile(dir, name)
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := errors.Join(StatNames(dir, name, fd, &st), d.ownName(name, &st)); err != nil {
			return errors.Join(err, unix.Close(fd))
		}
		f = os.NewFile(uintptr(fd), path.Join(d.path, name))
		return nil
	})
	return f, err
}

// OpenDir opens a directory in this one. The caller must close it.
func (d *Dir) OpenDir(name string) (*Dir, error) {
	var sub *Dir
	err := d.do("open", name, func(dir int) error {
		fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err == nil {
			sub = newDir(d.root, fd, path.Join(d.path, name))
		}
		return err
	})
	return sub, err
}

// ReadDir lists the names in the directory, sorted.
func (d *Dir) ReadDir() ([]string, error) {
	f, err := d.readable()
	if err != nil {
		return nil, pathError("readdir", d.path, err)
	}
	defer f.Close()
	names, err := ReadNames(f.Readdirnames)
	if errors.Is(err, ErrEndless) {
		err = pathError("readdir", d.path, err)
	}
	return names, err
}

// readable opens the directory itself for reading.
func (d *Dir) readable() (*os.File, error) {
	fd, err := RetryOpen(func() (int, error) {
		return unix.Openat(d.FD(), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), d.path), nil
}

// Sync syncs the directory, so that its names survive a power failure. Filesystems that cannot sync directories do not
// need it.
func (d *Dir) Sync() error {
	f, err := d.readable()
	if err != nil {
		return pathError("sync", d.path, err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil && !errors.Is(err, unix.EINVAL) {
		return err
	}
	return nil
}
