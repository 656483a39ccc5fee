package walk

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Renew makes a copy of a regular file to replace it, if a change of owner, group or mode removes the right of an
// unprivileged user to write to the file: such a user may have the file open and continue to write to it, or have given
// it other names. The copy has the content at the time of the call. A file stays unchanged if an unprivileged user owns
// it before and after: a program of that user may have it open, and the user is responsible for its mode.
//
// file is the file, opened with O_PATH, whose name is in the open directory dir, and st describes it; uid and gid are
// -1 if they stay unchanged. Renew returns the descriptor of the copy, or file itself if no copy is needed. The caller
// makes the change on that descriptor and passes its error to done, which renames the copy to name.
func (r *Root) Renew(dir int, name string, file int, st *unix.Stat_t, uid, gid int, mode uint32) (fd int,
	done func(error) error, err error) {
	lost, err := r.loses(file, st, uid, gid, mode)
	if err != nil || !lost {
		return file, func(err error) error { return err }, err
	}
	from, err := r.openFile(dir, name)
	if err != nil {
		return -1, nil, err
	}
	source := os.NewFile(uintptr(from), name)
	defer source.Close()
	var is unix.Stat_t
	if err := unix.Fstat(from, &is); err != nil || is.Dev != st.Dev || is.Ino != st.Ino {
		return -1, nil, errors.Join(err, fmt.Errorf("it was exchanged meanwhile: %w", unix.EAGAIN))
	}
	c, err := newCopy(dir, name)
	if err != nil {
		return -1, nil, err
	}
	if err := r.fillCopy(c.file, source, &is); err != nil {
		return -1, nil, c.done(err)
	}
	return int(c.file.Fd()), func(err error) error {
		if err == nil {
			err = unix.UtimesNano(Handle(int(c.file.Fd())), []unix.Timespec{is.Atim, is.Mtim})
		}
		return c.done(err)
	}, nil
}

// loses reports whether an unprivileged user can write to a regular file before a change, and not after it.
func (r *Root) loses(fd int, st *unix.Stat_t, uid, gid int, mode uint32) (bool, error) {
	if r.self != 0 || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return false, nil
	}
	if r.unprivileged(st.Uid) {
		return uid >= 0 && uint32(uid) != st.Uid, nil
	}
	by, err := r.controllersOf(fd, st)
	for _, c := range by {
		group := c.kind != 'o' && (mode&0o020 == 0 || c.kind == 'g' && c.id == st.Gid && gid >= 0 && uint32(gid) != c.id)
		if group || c.kind == 'o' && mode&0o002 == 0 {
			return true, err
		}
	}
	return false, err
}

// fileCopy is a copy that will replace a file.
type fileCopy struct {
	dir        int
	file       *os.File
	temp, name string
}

func newCopy(dir int, name string) (*fileCopy, error) {
	temp := fmt.Sprintf(TempPrefix+"%d-%08x", os.Getpid(), rand.Uint32())
	fd, err := RetryOpen(func() (int, error) {
		return unix.Openat(dir, temp, unix.O_CREAT|unix.O_EXCL|unix.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	})
	if err != nil {
		return nil, err
	}
	return &fileCopy{dir: dir, file: os.NewFile(uintptr(fd), temp), temp: temp, name: name}, nil
}

// done renames the copy to its final name, or removes it after an error.
func (c *fileCopy) done(err error) error {
	if err == nil {
		err = c.file.Sync()
	}
	if err = errors.Join(err, c.file.Close()); err == nil {
		err = unix.Renameat(c.dir, c.temp, c.dir, c.name)
	}
	if err != nil {
		_ = unix.Unlinkat(c.dir, c.temp, 0)
	}
	return err
}

// fillCopy copies the content of a file, without bytes that are appended in the meantime, and its attributes, group and
// permissions. It does not copy access control lists and capabilities.
func (r *Root) fillCopy(to, from *os.File, st *unix.Stat_t) error {
	fd := int(to.Fd())
	if err := DropACL(fd); err != nil {
		return err
	}
	shared := unix.IoctlFileClone(fd, int(from.Fd())) == nil // with shared blocks, no copy is needed
	for at := int64(0); at < st.Size && !shared; {
		start, end := Extent(from, at, st.Size)
		n, err := io.Copy(io.NewOffsetWriter(to, start), io.NewSectionReader(from, start, end-start))
		if err != nil {
			return err
		}
		if at = end; n < end-start {
			break // it was truncated in the meantime
		}
	}
	if err := to.Truncate(st.Size); err != nil {
		return err
	}
	copyAttributes(fd, int(from.Fd()))
	uid := -1
	if !r.unprivileged(st.Uid) {
		uid = int(st.Uid)
	}
	if err := unix.Fchown(fd, uid, int(st.Gid)); err != nil {
		return err
	}
	return unix.Fchmod(fd, st.Mode&0o777)
}

// copyAttributes copies SELinux labels and the attributes of users. An attribute that the filesystem does not support
// is left out.
func copyAttributes(to, from int) {
	names := make([]byte, 64<<10)
	n, err := unix.Flistxattr(from, names)
	if err != nil {
		return
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(names[:n]), "\x00"), "\x00") {
		if value := make([]byte, 64<<10); name == "security.selinux" || strings.HasPrefix(name, "user.") || IsNote(name) {
			if n, err := unix.Fgetxattr(from, name, value); err == nil {
				_ = unix.Fsetxattr(to, name, value[:n], 0)
			}
		}
	}
}
