package walk

import (
	"errors"
	"path"

	"golang.org/x/sys/unix"
)

// CheckRootOnly returns an error, in a safe root, for a file or directory if an unprivileged user controls any part of
// it: the way to it, or a file, directory or link in it, or the target of such a link. A program that reads its
// configuration, or the names of other programs, from such a place must not run as root. The way is also checked if the
// path does not exist yet; the error is then fs.ErrNotExist if the way is safe.
func (r *Root) CheckRootOnly(p string) error {
	if !r.safe {
		return nil
	}
	if err := r.ByName(p); err != nil {
		return err
	}
	fd, err := r.Openat(p, unix.O_PATH)
	if err != nil {
		return pathError("open", p, err)
	}
	return rootOnlyTree{root: r, asked: p, seen: map[[2]uint64]bool{}}.opened(fd, p)
}

// Shared returns the errors of CheckRootOnly for up to most parts: only that of the way to the path if the way is
// unsafe, otherwise that of each part of the tree that an unprivileged user controls. If the path does not exist and
// the way is safe, the error is fs.ErrNotExist.
func (r *Root) Shared(p string, most int) ([]*UnsafeError, error) {
	var unsafe *UnsafeError
	if err := r.ByName(p); errors.As(err, &unsafe) {
		return []*UnsafeError{unsafe}, nil
	} else if err != nil {
		return nil, err
	}
	fd, err := r.Openat(p, unix.O_PATH)
	if err != nil {
		return nil, pathError("open", p, err)
	}
	var found []*UnsafeError
	s := rootOnlyTree{root: r, asked: p, seen: map[[2]uint64]bool{}, found: &found, most: most}
	if err := s.opened(fd, p); errors.As(err, &unsafe) {
		return append(found, unsafe), nil
	} else if err != nil {
		return found, err
	}
	return found, nil
}

// CheckRootOnly returns an error, in a safe root, for a name itself if an unprivileged user controls it. It checks
// neither the way to the name nor the content of a directory, and follows no links.
func (d *Dir) CheckRootOnly(name string) error {
	if !d.root.safe {
		return nil
	}
	full := path.Join(d.path, name)
	return d.place("open", name, func(fd int, st *unix.Stat_t) error {
		return rootOnlyTree{root: d.root, asked: full}.entry(fd, full, st)
	})
}

// rootOnlyTree is the check of a tree by CheckRootOnly or Shared.
type rootOnlyTree struct {
	root  *Root
	asked string
	seen  map[[2]uint64]bool // directories, by device and inode, since links may form loops
	found *[]*UnsafeError    // collects up to most parts instead of returning them; nil to stop at the first
	most  int
}

// directory checks an open directory and everything in it, and closes it.
func (s rootOnlyTree) directory(fd int, name string) error {
	d := newDir(s.root, fd, name)
	defer d.Close()
	st, err := d.Lstat(".")
	if err != nil {
		return err
	}
	id := [2]uint64{st.Dev, st.Ino}
	if s.seen[id] {
		return nil
	}
	s.seen[id] = true
	if err := s.entry(fd, name, &st); err != nil {
		return err
	}
	names, err := d.ReadDir()
	if err != nil {
		return err
	}
	for _, n := range names {
		if err := s.below(d, n, path.Join(name, n)); err != nil {
			return err
		}
	}
	return nil
}

// below checks one name in a directory. A name that has disappeared is fine.
func (s rootOnlyTree) below(d *Dir, n, full string) error {
	fd, err := RetryOpen(func() (int, error) {
		return unix.Openat(d.FD(), n,
			unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	if found, err := Found(err); !found {
		return pathError("open", full, err)
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return s.directory(fd, full)
	}
	if err == nil {
		err = s.entry(fd, full, &st)
	}
	_ = unix.Close(fd) // opened with O_PATH
	if err == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return s.link(full)
	}
	return err
}

// link checks the target of a link. A dangling link is fine.
func (s rootOnlyTree) link(full string) error {
	if err := s.root.ByName(full); err != nil {
		return err
	}
	fd, err := s.root.Openat(full, unix.O_PATH)
	if found, err := Found(err); !found {
		return pathError("open", full, err)
	}
	return s.opened(fd, full)
}

// opened checks an open file or directory, and closes it.
func (s rootOnlyTree) opened(fd int, full string) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		_ = unix.Close(fd) // the error of fstat matters more
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return s.directory(fd, full)
	}
	defer unix.Close(fd)
	return s.entry(fd, full, &st)
}

// entry returns an error for a file or directory that an unprivileged user owns or may write to, and for a directory in
// which new names would be writable for such a user. The sticky bit does not matter, since it does not prevent new
// names.
func (s rootOnlyTree) entry(fd int, full string, st *unix.Stat_t) error {
	var by []controller
	if s.root.unprivileged(st.Uid) {
		by = append(by, controller{kind: 'u', id: st.Uid})
	}
	if st.Mode&unix.S_IFMT != unix.S_IFLNK {
		open := *st
		open.Mode &^= unix.S_ISVTX
		all, err := s.root.controllersOf(fd, &open)
		if err != nil {
			return pathError("getxattr", full, err)
		}
		by = append(by, all...)
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		later, err := s.root.inherited(fd, st)
		if err != nil {
			return pathError("getxattr", full, err)
		}
		by = append(by, later...)
	}
	if len(by) == 0 {
		return nil
	}
	unsafe := &UnsafeError{Path: s.asked, Component: full, By: by[0].String(), Owner: int(st.Uid), Tree: true}
	if s.found == nil || len(*s.found)+1 >= s.most {
		return unsafe
	}
	*s.found = append(*s.found, unsafe)
	return nil
}
