package host

import (
	"errors"
	"io/fs"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

func (t *tree) Mkdir(p string, mode fs.FileMode) error {
	return t.write("mkdir", p, func(dir int, name string) error {
		if strings.HasPrefix(name, tempPrefix) {
			t.temps.in(dir)
		}
		if err := unix.Mkdirat(dir, name, walk.RawMode(mode)); err != nil {
			return err
		}
		// The umask does not apply to a mode that a state declares.
		fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if err := walk.DropACL(fd); err != nil { // inherited from the directory above
			return err
		}
		return unix.Chmod(walk.Handle(fd), walk.RawMode(mode))
	})
}

func (t *tree) Symlink(target, p string) error {
	err := t.write("symlink", p, func(dir int, name string) error {
		temp := tempName()
		t.temps.in(dir)
		if err := unix.Symlinkat(target, dir, temp); err != nil {
			return err
		}
		err := unix.Renameat(dir, temp, dir, name)
		if err != nil {
			_ = unix.Unlinkat(dir, temp, 0)
		}
		return err
	})
	if err == nil && !ownTemp(p) {
		t.left.leads(t.steady(p, t.real(p)), target)
	}
	return err
}

func (t *tree) Link(old, p string) error {
	return t.between("link", old, p, func(from former, dir int, name string) error {
		if strings.HasPrefix(name, tempPrefix) {
			t.temps.in(dir)
		}
		if from.link {
			return unix.Linkat(from.dir, from.name, dir, name, 0)
		}
		return unix.Linkat(unix.AT_FDCWD, walk.Handle(from.fd), dir, name, unix.AT_SYMLINK_FOLLOW)
	})
}

func (t *tree) Rename(old, p string) error {
	// A directory is renamed with its content.
	kind := KindFile
	if info, err := t.Lstat(old); err == nil && info.IsDir() && t.recorder != nil {
		kind = KindTree
		if err := t.record(kind, p); err != nil {
			return err
		}
	}
	if err := t.record(kind, old); err != nil {
		return err
	}
	err := t.between("rename", old, p, func(from former, dir int, name string) error {
		return unix.Renameat(from.dir, from.name, dir, name)
	})
	if err == nil {
		t.changed(old)
		t.noteRemoval(old, t.real(old))
	}
	return err
}

// former is the first of two paths, opened with O_PATH.
type former struct {
	dir  int
	name string
	fd   int
	link bool
}

// between runs a call that uses the path old and changes the path p.
func (t *tree) between(op, old, p string, call func(from former, dir int, name string) error) error {
	from := former{}
	var done func()
	var err error
	if from.dir, from.name, done, err = t.at(old); err != nil {
		return t.failed(op, old, err)
	}
	defer done()
	fd, st, err := t.place(from.dir, from.name)
	if err != nil {
		return t.failed(op, old, err)
	}
	defer unix.Close(fd)
	from.fd, from.link = fd, st.Mode&unix.S_IFMT == unix.S_IFLNK
	kind, moved := t.decidedKind(old, infoOf(&st)), ""
	if op == "rename" && kind == fs.ModeDir {
		moved = t.steady(old, t.below(from.dir, from.name, old))
	}
	return t.write(op, p, func(dir int, name string) error {
		err := call(from, dir, name)
		if err == nil {
			t.noteObject(p, dir, name, t.below(dir, name, p), kind, moved)
		}
		return err
	})
}

func (t *tree) Remove(p string) error {
	return t.write("remove", p, unlink)
}

func unlink(dir int, name string) error {
	err := unix.Unlinkat(dir, name, 0)
	if errors.Is(err, unix.EISDIR) {
		return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
	}
	return err
}

// RemoveAll descends by directory handles, so that no link can redirect it. Its time is proportional to the number of
// files, at any depth.
func (t *tree) RemoveAll(p string) error {
	if err := t.recordAll(p); err != nil {
		return err
	}
	err := t.do("remove", p, func(dir int, name string) error {
		if err := t.unsynced.add(dir); err != nil { // before the paths of the walk become too long
			return err
		}
		err := t.eachBelow(dir, name, p, func(at *walk.Dir, below string) error {
			return t.removeOne(at.FD(), below, joined(at, below))
		})
		if err != nil {
			return err
		}
		if err = t.removeOne(dir, name, p); err == nil {
			t.noteRemoval(p, t.below(dir, name, p))
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrNotDir) {
		return nil
	}
	return explain(err)
}

// recordAll records a tree in the order of its removal, so that one wait covers all of it.
func (t *tree) recordAll(p string) error {
	if !t.records(p) {
		return nil
	}
	err := t.do("remove", p, func(dir int, name string) error {
		return t.eachBelow(dir, name, p, func(at *walk.Dir, below string) error { return t.recordNamed(joined(at, below)) })
	})
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrNotDir) {
		return nil // the caller that removes it reports that it does not exist
	}
	if err != nil {
		return err
	}
	return t.record(KindFile, p)
}

// mostLevels limits the length of a path whose file is recorded. Each record looks at every directory of the path, so a
// user could delay a run for hours with directories in directories.
const mostLevels = 256

// recordNamed records a file. One whose path has too many levels, or is too long for a system call, is not recorded, so
// a rollback does not restore it.
func (t *tree) recordNamed(p string) error {
	if len(p) >= unix.PathMax || strings.Count(p, "/") > mostLevels {
		return nil
	}
	return t.record(KindFile, p)
}

func joined(at *walk.Dir, name string) string { return at.Path() + "/" + name }

// eachBelow calls a function for everything below a name, for a directory after its entries. It does nothing if the
// name is not a directory.
func (t *tree) eachBelow(dir int, name, p string, call func(at *walk.Dir, name string) error) error {
	fd, err := walk.RetryOpen(func() (int, error) {
		return unix.Openat(dir, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil
	}
	if err != nil {
		return err
	}
	d := t.root.Opened(fd, p)
	defer d.Close()
	return d.Walk(walk.Visit{
		Enter: func(at *walk.Dir, below string, st *unix.Stat_t) (bool, error) {
			if err := t.ended(p); err != nil {
				return false, err
			}
			if st.Mode&unix.S_IFMT == unix.S_IFDIR {
				return true, nil
			}
			return false, call(at, below)
		},
		Leave: func(at *walk.Dir, below string) error {
			if err := t.ended(p); err != nil {
				return err
			}
			return call(at, below)
		},
	})
}

// removeOne removes a file or an empty directory. It may be absent.
func (t *tree) removeOne(dir int, name, p string) error {
	if err := t.recordNamed(p); err != nil {
		return err
	}
	if err := t.kept(name); err != nil {
		return err
	}
	if err := errors.Join(t.unsynced.add(dir), unlink(dir, name)); err != nil && !errors.Is(err, unix.ENOENT) {
		return pathError("remove", t.whole(p), walk.ExplainPermission(err, dir, name))
	}
	t.changed(p)
	return nil
}

// Chmod, Own and Chtimes open the path first and change it by its descriptor, since the kernel's calls by path would
// follow a link at its end.
func (t *tree) Chmod(p string, mode fs.FileMode) error {
	return t.write("chmod", p, func(dir int, name string) error {
		fd, st, err := t.place(dir, name)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if err := t.root.MayRaise(dir, fd, t.below(dir, name, p), &st, &st, mode); err != nil {
			return err
		}
		fd, done, err := t.root.Renew(dir, name, fd, &st, -1, -1, walk.RawMode(mode))
		if err != nil {
			return err
		}
		return done(unix.Chmod(walk.Handle(fd), walk.RawMode(mode)))
	})
}

func (t *tree) Own(p string, uid, gid int, mode *fs.FileMode) error {
	return t.write("chown", p, func(dir int, name string) error {
		fd, st, err := t.place(dir, name)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		raw := st.Mode
		if mode != nil {
			raw = walk.RawMode(*mode)
		}
		fd, done, err := t.root.Renew(dir, name, fd, &st, uid, gid, raw)
		if err != nil {
			return err
		}
		return done(t.own(fd, st, uid, gid, mode, func(after *unix.Stat_t, bits fs.FileMode) error {
			// The former owner wrote the content. So setuid bits that the caller sets are refused as well, since the
			// directory may belong to root only now.
			return t.root.MayRaise(dir, fd, t.below(dir, name, p), &st, after, bits)
		}))
	})
}

// own sets the owner and the group of an open file. Chown clears special bits, so the mode is set afterwards.
func (t *tree) own(fd int, st unix.Stat_t, uid, gid int, mode *fs.FileMode,
	may func(*unix.Stat_t, fs.FileMode) error) error {
	bits, link := modeOf(st.Mode)&^fs.ModeType, st.Mode&unix.S_IFMT == unix.S_IFLNK
	if mode != nil {
		bits = *mode
	}
	was := st
	chown := uid >= 0 && uint32(uid) != st.Uid || gid >= 0 && uint32(gid) != st.Gid
	st.Uid, st.Gid = uint32(keep(uid, int(st.Uid))), uint32(keep(gid, int(st.Gid)))
	refused := may(&st, bits)
	if refused != nil && mode != nil && !link {
		return refused
	}
	if chown {
		if err := unix.Fchownat(fd, "", uid, gid, unix.AT_EMPTY_PATH); err != nil {
			return err
		}
		if err := t.root.TakeOver(fd, &was, uid); err != nil {
			return err
		}
	}
	if link || refused != nil || mode == nil && !chown {
		return nil
	}
	if mode == nil { // TakeOver may have removed permissions of the group
		if err := unix.Fstat(fd, &was); err != nil {
			return err
		}
		bits = bits&^fs.ModePerm | modeOf(was.Mode)&fs.ModePerm
	}
	return unix.Chmod(walk.Handle(fd), walk.RawMode(bits))
}

func (t *tree) Chtimes(p string, accessed, modified time.Time) error {
	times := []unix.Timespec{unix.NsecToTimespec(accessed.UnixNano()), unix.NsecToTimespec(modified.UnixNano())}
	return t.itself("chtimes", p, func(place string) error { return unix.UtimesNano(place, times) })
}

func (t *tree) itself(op, p string, call func(place string) error) error {
	return t.write(op, p, func(dir int, name string) error {
		fd, _, err := t.place(dir, name)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return call(walk.Handle(fd))
	})
}

// place opens a name with O_PATH, without following a link. It returns an error if a user may have created the name as
// a hard link to a file of another user. The caller must close fd.
func (t *tree) place(dir int, name string) (fd int, st unix.Stat_t, err error) {
	if fd, err = unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0); err != nil {
		return -1, st, err
	}
	if err = walk.StatNames(dir, name, fd, &st); err == nil {
		err = t.ownName(dir, name, &st)
	}
	if err != nil {
		_ = unix.Close(fd)
	}
	return fd, st, err
}

func (t *tree) ownName(dir int, name string, st *unix.Stat_t) error {
	if st.Mode&unix.S_IFMT == unix.S_IFDIR || st.Nlink < 2 {
		return nil
	}
	return t.root.OwnName(dir, t.below(dir, name, name), st)
}

func (t *tree) Chown(p string, uid, gid int) error {
	return t.write("chown", p, func(dir int, name string) error {
		fd, st, err := t.place(dir, name)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		fd, done, err := t.root.Renew(dir, name, fd, &st, uid, gid, st.Mode)
		if err != nil {
			return err
		}
		if err := unix.Fchownat(fd, "", uid, gid, unix.AT_EMPTY_PATH); err != nil {
			return done(err)
		}
		return done(t.root.TakeOver(fd, &st, uid))
	})
}
