package walk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// New has the attributes of a new file.
type New struct {
	Mode     fs.FileMode // permissions, setuid, setgid and sticky bits, regardless of the umask
	UID, GID int         // -1 means the program's own
}

// TempPrefix starts the names of temporary files, as in package durable, whose Sweep removes them.
const TempPrefix = ".corpus-tmp-"

// Create makes a file with the content that fill writes. It replaces an existing file or link atomically: readers see
// the old content or the new one, even after a power failure. If fill fails, nothing changes.
func (d *Dir) Create(name string, n New, fill func(io.Writer) error) error {
	if err := single(name); err != nil || name == "." {
		return pathError("create", path.Join(d.path, name), unix.EINVAL)
	}
	temp := fmt.Sprintf(TempPrefix+"%d-%08x", os.Getpid(), rand.Uint32())
	err := d.write(temp, n, fill)
	if err == nil {
		err = d.Rename(temp, d, name)
	}
	if err != nil {
		_ = unix.Unlinkat(d.FD(), temp, 0)
		return err
	}
	return d.Sync()
}

// write makes a temporary file. It changes the file only by its descriptor.
func (d *Dir) write(temp string, n New, fill func(io.Writer) error) error {
	fd, err := RetryOpen(func() (int, error) {
		return unix.Openat(d.FD(), temp, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	})
	if err != nil {
		return pathError("create", path.Join(d.path, temp), err)
	}
	f := os.NewFile(uintptr(fd), path.Join(d.path, temp))
	err = DropACL(fd) // before the file has content
	if err == nil {
		err = fill(f)
	}
	if err == nil && (n.UID >= 0 || n.GID >= 0) {
		err = f.Chown(n.UID, n.GID)
	}
	if err == nil {
		err = f.Chmod(n.Mode) // after chown, which clears setuid
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// Mkdir makes a directory and opens it. Its mode does not depend on the umask. The caller must close it.
func (d *Dir) Mkdir(name string, n New) (*Dir, error) {
	if err := d.do("mkdir", name, func(dir int) error { return unix.Mkdirat(dir, name, 0o700) }); err != nil {
		return nil, err
	}
	made, err := d.OpenDir(name)
	if err != nil {
		return nil, err
	}
	if err := made.become(n); err != nil {
		return nil, errors.Join(err, made.Close())
	}
	return made, nil
}

// become sets owner and mode of a new directory, unless an unprivileged user has replaced it.
func (d *Dir) become(n New) error {
	st, err := d.Lstat(".")
	if err != nil {
		return err
	}
	if d.root.unprivileged(st.Uid) {
		return &UnsafeError{Path: d.path, Component: d.path,
			By: controller{kind: 'u', id: st.Uid}.String(), Owner: int(st.Uid)}
	}
	if n.UID >= 0 || n.GID >= 0 {
		if err := d.Chown(".", n.UID, n.GID); err != nil {
			return err
		}
	}
	if err := DropACL(d.FD()); err != nil {
		return pathError("removexattr", d.path, err)
	}
	return d.Chmod(".", n.Mode)
}

// Symlink makes a link. It replaces an existing file or link atomically.
func (d *Dir) Symlink(target, name string) error {
	temp := fmt.Sprintf(TempPrefix+"%d-%08x", os.Getpid(), rand.Uint32())
	if err := d.do("symlink", name, func(dir int) error { return unix.Symlinkat(target, dir, temp) }); err != nil {
		return err
	}
	if err := d.Rename(temp, d, name); err != nil {
		_ = unix.Unlinkat(d.FD(), temp, 0)
		return err
	}
	return nil
}

// Rename renames a file, possibly into another directory. It replaces an existing file.
func (d *Dir) Rename(name string, to *Dir, newName string) error {
	if err := single(newName); err != nil {
		return pathError("rename", path.Join(to.path, newName), err)
	}
	return d.do("rename", name, func(dir int) error { return unix.Renameat(dir, name, to.FD(), newName) })
}

// Unlink removes a file, link or empty directory.
func (d *Dir) Unlink(name string) error {
	return d.do("remove", name, func(dir int) error {
		err := unix.Unlinkat(dir, name, 0)
		if errors.Is(err, unix.EISDIR) {
			return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
		}
		return err
	})
}

// RemoveAll removes a name and everything below it. It is not an error if the name does not exist. The removal ends
// with its context, with the context's error, and leaves the rest.
func (d *Dir) RemoveAll(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	sub, err := d.OpenDir(name)
	switch {
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	default:
		if err := errors.Join(sub.Walk(emptying(ctx)), sub.Close()); err != nil {
			return err
		}
	}
	if err := d.Unlink(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// emptying returns a Visit that removes everything, until its context ends.
func emptying(ctx context.Context) Visit {
	remove := func(at *Dir, name string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := at.Unlink(name); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return Visit{
		Enter: func(at *Dir, name string, st *unix.Stat_t) (bool, error) {
			if st.Mode&unix.S_IFMT == unix.S_IFDIR {
				return true, nil
			}
			return false, remove(at, name)
		},
		Leave: remove,
	}
}

// Chown sets the owner and group of a name itself; -1 leaves one unchanged. In a safe root, a file with several names
// is an error if an unprivileged user controls its directory and does not own the file. If such a user could write to
// the file before, a copy replaces it: see Renew.
func (d *Dir) Chown(name string, uid, gid int) error {
	return d.place("chown", name, func(fd int, st *unix.Stat_t) error {
		return d.chown(name, fd, st, uid, gid)
	})
}

// chown sets the owner and group of a name that is open with O_PATH.
func (d *Dir) chown(name string, fd int, st *unix.Stat_t, uid, gid int) error {
	fd, done, err := d.root.Renew(d.FD(), name, fd, st, uid, gid, st.Mode)
	if err != nil {
		return err
	}
	if err := unix.Fchownat(fd, "", uid, gid, unix.AT_EMPTY_PATH); err != nil {
		return done(err)
	}
	return done(d.root.TakeOver(fd, st, uid))
}

// Chmod sets the mode of a file or directory. A link has none. It returns the errors of Chown and MayRaise, and
// replaces files like Chown.
func (d *Dir) Chmod(name string, mode fs.FileMode) error {
	return d.place("chmod", name, func(fd int, st *unix.Stat_t) error {
		if st.Mode&unix.S_IFMT == unix.S_IFLNK {
			return unix.EOPNOTSUPP
		}
		if err := d.root.MayRaise(d.FD(), fd, path.Join(d.path, name), st, st, mode); err != nil {
			return err
		}
		fd, done, err := d.root.Renew(d.FD(), name, fd, st, -1, -1, RawMode(mode))
		if err != nil {
			return err
		}
		return done(unix.Chmod(Handle(fd), RawMode(mode)))
	})
}
