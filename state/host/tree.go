package host

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// tree is the Files of a machine or of a root. Every operation goes through at or open, which give
// a directory handle and a name to the kernel's *at calls. With a root the kernel itself resolves
// the way to that directory inside the root (openat2(2), Linux 5.6), so neither an absolute link
// nor a race can lead out.
type tree struct {
	root     int // file descriptor of the root, or -1 for the machine's own "/"
	recorder Recorder
	changed  func(path string) // told after a write, to forget what was read
}

func openTree(root string, relocated bool, recorder Recorder, changed func(string)) (*tree, error) {
	t := &tree{root: -1, recorder: recorder, changed: changed}
	if !relocated {
		return t, nil
	}
	fd, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: root, Err: err}
	}
	t.root = fd
	return t, nil
}

const inRoot = unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS

// openat opens a path, links followed.
func (t *tree) openat(p string, flags int) (int, error) {
	if t.root < 0 {
		return retry(func() (int, error) { return unix.Open(p, flags|unix.O_CLOEXEC, 0) })
	}
	how := &unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC), Resolve: inRoot}
	fd, err := retry(func() (int, error) { return unix.Openat2(t.root, relative(p), how) })
	if errors.Is(err, unix.ENOSYS) {
		return -1, errors.New("a root needs Linux 5.6 or newer")
	}
	return fd, err
}

// relative is an absolute path as seen from the root.
func relative(p string) string {
	if r := strings.TrimLeft(path.Clean(p), "/"); r != "" {
		return r
	}
	return "."
}

// at gives the directory of a path and the last name in it.
func (t *tree) at(p string) (dir int, name string, done func(), err error) {
	if !path.IsAbs(p) {
		return 0, "", nil, fmt.Errorf("%q is not an absolute path", p)
	}
	p = path.Clean(p)
	if t.root < 0 {
		return unix.AT_FDCWD, p, func() {}, nil
	}
	dir, err = t.openat(path.Dir(p), unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return 0, "", nil, err
	}
	return dir, path.Base(relative(p)), func() { _ = unix.Close(dir) }, nil
}

// do runs one *at call on a path.
func (t *tree) do(op, p string, call func(dir int, name string) error) error {
	dir, name, done, err := t.at(p)
	if err == nil {
		err = again(func() error { return call(dir, name) })
		done()
	}
	if err != nil {
		return &fs.PathError{Op: op, Path: p, Err: err}
	}
	return nil
}

// write is do for what changes the path: it is recorded first and forgotten after.
func (t *tree) write(op, p string, call func(dir int, name string) error) error {
	if t.recorder != nil {
		if err := t.recorder.Replacing(Subject{Kind: "file", Name: p}); err != nil {
			return fmt.Errorf("recording %s: %w", p, err)
		}
	}
	err := t.do(op, p, call)
	if err == nil {
		t.changed(p)
	}
	return err
}

// again repeats a system call that a signal interrupted.
func again(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func retry(call func() (int, error)) (fd int, err error) {
	err = again(func() error { fd, err = call(); return err })
	return fd, err
}

func (t *tree) Lstat(p string) (info Info, err error) {
	err = t.do("lstat", p, func(dir int, name string) error {
		var st unix.Stat_t
		err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
		info = infoOf(&st)
		return err
	})
	return info, err
}

func (t *tree) Stat(p string) (Info, error) {
	var st unix.Stat_t
	if t.root < 0 {
		err := again(func() error { return unix.Stat(p, &st) })
		return infoOf(&st), pathError("stat", p, err)
	}
	fd, err := t.openat(p, unix.O_PATH)
	if err != nil {
		return Info{}, pathError("stat", p, err)
	}
	defer unix.Close(fd)
	err = unix.Fstatat(fd, "", &st, unix.AT_EMPTY_PATH)
	return infoOf(&st), pathError("stat", p, err)
}

func pathError(op, p string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: p, Err: err}
}

func infoOf(st *unix.Stat_t) Info {
	return Info{
		Mode: modeOf(st.Mode), Size: st.Size, UID: int(st.Uid), GID: int(st.Gid), Inode: st.Ino, Links: uint64(st.Nlink),
		Accessed: time.Unix(st.Atim.Unix()), Modified: time.Unix(st.Mtim.Unix()), Changed: time.Unix(st.Ctim.Unix()),
	}
}

// modeOf and rawMode translate between the kernel's bits and Go's.
func modeOf(raw uint32) fs.FileMode {
	mode := fs.FileMode(raw & 0o777)
	for _, b := range modeBits() {
		if raw&b.raw == b.raw && (b.raw&unix.S_IFMT == 0 || raw&unix.S_IFMT == b.raw) {
			mode |= b.mode
		}
	}
	return mode
}

func rawMode(mode fs.FileMode) uint32 {
	raw := uint32(mode.Perm())
	for _, b := range modeBits() {
		if b.raw&unix.S_IFMT == 0 && mode&b.mode != 0 {
			raw |= b.raw
		}
	}
	return raw
}

type modeBit struct {
	raw  uint32
	mode fs.FileMode
}

func modeBits() []modeBit {
	return []modeBit{
		{unix.S_IFDIR, fs.ModeDir}, {unix.S_IFLNK, fs.ModeSymlink}, {unix.S_IFIFO, fs.ModeNamedPipe}, {unix.S_IFSOCK, fs.ModeSocket},
		{unix.S_IFBLK, fs.ModeDevice}, {unix.S_IFCHR, fs.ModeDevice | fs.ModeCharDevice},
		{unix.S_ISUID, fs.ModeSetuid}, {unix.S_ISGID, fs.ModeSetgid}, {unix.S_ISVTX, fs.ModeSticky},
	}
}

func (t *tree) Readlink(p string) (target string, err error) {
	err = t.do("readlink", p, func(dir int, name string) error {
		buf := make([]byte, unix.PathMax)
		n, err := unix.Readlinkat(dir, name, buf)
		if err == nil {
			target = string(buf[:n])
		}
		return err
	})
	return target, err
}

func (t *tree) open(p string) (*os.File, error) {
	fd, err := t.openat(p, unix.O_RDONLY)
	if err != nil {
		return nil, pathError("open", p, err)
	}
	return os.NewFile(uintptr(fd), p), nil
}

func (t *tree) Open(p string) (io.ReadCloser, error) {
	f, err := t.open(p)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (t *tree) ReadFile(p string) ([]byte, error) {
	f, err := t.open(p)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

func (t *tree) ReadDir(p string) ([]string, error) {
	f, err := t.open(p)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

func (t *tree) Mkdir(p string, mode fs.FileMode) error {
	return t.write("mkdir", p, func(dir int, name string) error {
		if err := unix.Mkdirat(dir, name, rawMode(mode)); err != nil {
			return err
		}
		// The umask has no say in what a state asks for.
		return unix.Fchmodat(dir, name, rawMode(mode), 0)
	})
}

func (t *tree) Symlink(target, p string) error {
	return t.write("symlink", p, func(dir int, name string) error {
		temp := tempName(name)
		if err := unix.Symlinkat(target, dir, temp); err != nil {
			return err
		}
		err := unix.Renameat(dir, temp, dir, name)
		if err != nil {
			_ = unix.Unlinkat(dir, temp, 0)
		}
		return err
	})
}

func (t *tree) Link(old, p string) error {
	return t.between("link", old, p, func(oldDir int, oldName string, dir int, name string) error {
		return unix.Linkat(oldDir, oldName, dir, name, 0)
	})
}

func (t *tree) Rename(old, p string) error {
	err := t.between("rename", old, p, func(oldDir int, oldName string, dir int, name string) error {
		return unix.Renameat(oldDir, oldName, dir, name)
	})
	if err == nil {
		t.changed(old)
	}
	return err
}

// between runs a call on two paths; both are recorded.
func (t *tree) between(op, old, p string, call func(oldDir int, oldName string, dir int, name string) error) error {
	return t.write(op, old, func(oldDir int, oldName string) error {
		return t.write(op, p, func(dir int, name string) error { return call(oldDir, oldName, dir, name) })
	})
}

func (t *tree) Remove(p string) error {
	return t.write("remove", p, func(dir int, name string) error {
		err := unix.Unlinkat(dir, name, 0)
		if errors.Is(err, unix.EISDIR) {
			return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
		}
		return err
	})
}

func (t *tree) RemoveAll(p string) error {
	info, err := t.Lstat(p)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.IsDir() {
		names, err := t.ReadDir(p)
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := t.RemoveAll(path.Join(p, name)); err != nil {
				return err
			}
		}
	}
	return t.Remove(p)
}

func (t *tree) Chmod(p string, mode fs.FileMode) error {
	return t.write("chmod", p, func(dir int, name string) error { return unix.Fchmodat(dir, name, rawMode(mode), 0) })
}

func (t *tree) Chown(p string, uid, gid int) error {
	return t.write("chown", p, func(dir int, name string) error {
		return unix.Fchownat(dir, name, uid, gid, unix.AT_SYMLINK_NOFOLLOW)
	})
}

func (t *tree) Chtimes(p string, accessed, modified time.Time) error {
	times := []unix.Timespec{unix.NsecToTimespec(accessed.UnixNano()), unix.NsecToTimespec(modified.UnixNano())}
	return t.write("chtimes", p, func(dir int, name string) error { return unix.UtimesNanoAt(dir, name, times, 0) })
}

func (t *tree) CanChown() bool { return os.Geteuid() == 0 }
