package walk

import (
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// Give makes a file, directory or link belong to a user and a group. A file with several names that is not the user's
// yet is refused, whatever the directory: one of its names may be where the user has nothing to say. Devices are
// refused too.
func (d *Dir) Give(name string, uid, gid int) error {
	return d.place("chown", name, func(fd int, st *unix.Stat_t) error {
		if int(st.Uid) == uid && int(st.Gid) == gid {
			return nil
		}
		full := path.Join(d.path, name)
		switch kind := st.Mode & unix.S_IFMT; {
		case kind == unix.S_IFREG && st.Nlink > 1 && int(st.Uid) != uid:
			return &UnsafeError{Path: full, Component: full, By: controller{kind: 'u', id: uint32(uid)}.String(), Owner: int(st.Uid)}
		case kind == unix.S_IFBLK, kind == unix.S_IFCHR:
			return unix.EPERM
		}
		if err := unix.Fchownat(fd, "", uid, gid, unix.AT_EMPTY_PATH); err != nil {
			return err
		}
		return d.root.TakeOver(fd, st, uid)
	})
}

// Below opens a directory some names below this one, and follows no link on the way. The caller must close it.
func (d *Dir) Below(names []string) (*Dir, error) {
	at := d
	for _, name := range names {
		next, err := at.OpenDir(name)
		if at != d {
			_ = at.Close() // only a place
		}
		if err != nil {
			return nil, err
		}
		at = next
	}
	if at == d {
		return d.OpenDir(".")
	}
	return at, nil
}

// New makes a file with mode 0600 for writing. A name that is there is an error. The caller must close it.
func (d *Dir) New(name string) (*os.File, error) {
	var f *os.File
	err := d.do("create", name, func(dir int) error {
		fd, err := unix.Openat(dir, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return err
		}
		f = os.NewFile(uintptr(fd), path.Join(d.path, name))
		return DropACL(fd)
	})
	return f, err
}

// Link gives a file of this directory another name, in another directory or in the same. A name that is there is an error.
// In a safe root it refuses what Chown refuses.
func (d *Dir) Link(name string, to *Dir, newName string) error {
	if err := single(newName); err != nil {
		return pathError("link", path.Join(to.path, newName), err)
	}
	return d.place("link", name, func(fd int, st *unix.Stat_t) error {
		return unix.Linkat(unix.AT_FDCWD, Handle(fd), to.FD(), newName, unix.AT_SYMLINK_FOLLOW)
	})
}

// Touch sets the times of a name itself.
func (d *Dir) Touch(name string, accessed, modified unix.Timespec) error {
	return d.do("touch", name, func(dir int) error {
		return unix.UtimesNanoAt(dir, name, []unix.Timespec{accessed, modified}, unix.AT_SYMLINK_NOFOLLOW)
	})
}
