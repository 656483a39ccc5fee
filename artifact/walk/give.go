package walk

import (
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// Give sets the owner and group of a file, directory or link. A file with several names that does not belong to the
// user yet is an error in any directory, since another of its names may be in a place that the user must not change.
// Devices are errors too. If another user could write to the file before, a copy replaces it: see Renew.
func (d *Dir) Give(name string, uid, gid int) error {
	return d.place("chown", name, func(fd int, st *unix.Stat_t) error {
		if int(st.Uid) == uid && int(st.Gid) == gid {
			return nil
		}
		full := path.Join(d.path, name)
		switch kind := st.Mode & unix.S_IFMT; {
		case kind == unix.S_IFREG && st.Nlink > 1 && int(st.Uid) != uid:
			return &UnsafeError{Path: full, Component: full,
				By: controller{kind: 'u', id: uint32(uid)}.String(), Owner: int(st.Uid)}
		case kind == unix.S_IFBLK, kind == unix.S_IFCHR:
			return unix.EPERM
		}
		return d.chown(name, fd, st, uid, gid)
	})
}

// Below opens a directory some levels below this one. It follows no links. The caller must close it.
func (d *Dir) Below(names []string) (*Dir, error) {
	at := d
	for _, name := range names {
		next, err := at.OpenDir(name)
		if at != d {
			_ = at.Close() // opened with O_PATH
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

// New makes a file with mode 0600 for writing. It is an error if the name exists. The caller must close it.
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

// Link gives a file another name, possibly in another directory. It is an error if the name exists. In a safe root it
// returns the same errors as Chown.
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
