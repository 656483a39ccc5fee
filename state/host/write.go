package host

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

func (t *tree) Write(p string, f NewFile) error {
	way := t.end
	if f.ReplaceLink {
		way = t.at
	}
	return t.change("write", p, way, func(dir int, name string) error { return t.replace(dir, name, f) })
}

// tempName returns a unique name for a temporary file, which is created in the directory of the target.
func tempName() string { return fmt.Sprintf(tempPrefix+"%d-%08x", os.Getpid(), rand.Uint32()) }

// replace writes a temporary file in the directory of the target, gives it the attributes of the target, and renames
// it. The file is synced before the rename, so that after a power failure it has either the old or the new content. The
// directory is synced after the rename, so that it has the new content; with a recorder, Sync does that once for each
// filesystem.
//
// The recorder writes its data while the file is written.
func (t *tree) replace(dir int, name string, f NewFile) (err error) {
	keeping := make(chan error, 1)
	go func() { keeping <- t.kept(name) }()
	temp := tempName()
	t.temps.in(dir)
	fd, err := walk.RetryOpen(func() (int, error) {
		return unix.Openat(dir, temp, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	})
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), temp)
	defer func() {
		if err != nil {
			_ = unix.Unlinkat(dir, temp, 0)
		}
	}()
	if err := errors.Join(t.fill(file, dir, name, f), file.Close()); err != nil {
		return err
	}
	if err := <-keeping; err != nil {
		return err
	}
	if err := unix.Renameat(dir, temp, dir, name); err != nil {
		return err
	}
	if t.recorder != nil || f.Unsynced {
		return nil
	}
	return syncDir(dir)
}

// fill writes the content of the temporary file, and sets its attributes before it is renamed.
func (t *tree) fill(file *os.File, dir int, name string, f NewFile) error {
	if err := walk.DropACL(int(file.Fd())); err != nil { // inherited; dropped before there is content
		return err
	}
	if err := writeContent(file, f.Content); err != nil {
		return err
	}
	uid, gid, mode := f.UID, f.GID, 0o666&^walk.RawMode(t.umask)
	fd, old, err := t.place(dir, name)
	if err == nil {
		defer unix.Close(fd)
	}
	switch {
	case err == nil && f.ReplaceLink && old.Mode&unix.S_IFMT == unix.S_IFLNK:
	case err == nil && old.Mode&unix.S_IFMT != unix.S_IFREG:
		return walk.ErrNoFile
	case err == nil:
		mode = old.Mode & 0o7777
		uid, gid = keep(uid, int(old.Uid)), keep(gid, int(old.Gid))
		if uint32(uid) != old.Uid && old.Uid != 0 {
			mode &= 0o777 // the former owner may have set its setuid bit
			if uid == 0 {
				mode = walk.Closed(mode|unix.S_IFREG) & 0o777
			}
		}
		copyAttributes(file, walk.Handle(fd), t.root.KeepsACL(dir, &old, uid))
	case !errors.Is(err, unix.ENOENT):
		return err
	}
	if f.Mode != nil {
		mode = walk.RawMode(*f.Mode)
	}
	if mode, err = t.raised(file, dir, name, f, uid, gid, mode); err != nil {
		return err
	}
	if err := file.Chown(uid, gid); err != nil && os.Geteuid() == 0 {
		return err
	}
	if err := unix.Fchmod(int(file.Fd()), mode); err != nil { // after chown, which clears setuid
		return err
	}
	if f.Unsynced {
		return nil
	}
	return file.Sync()
}

// raised returns the mode of a new file. In a directory in which an unprivileged user may create files, setuid and
// setgid bits of the replaced file are dropped, and requested ones are refused.
func (t *tree) raised(file *os.File, dir int, name string, f NewFile, uid, gid int, mode uint32) (uint32, error) {
	if mode&(unix.S_ISUID|unix.S_ISGID) == 0 || f.Restored {
		return mode, nil
	}
	var was unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &was); err != nil {
		return 0, err
	}
	after := was
	after.Uid, after.Gid = uint32(keep(uid, int(was.Uid))), uint32(keep(gid, int(was.Gid)))
	err := t.root.MayRaise(dir, int(file.Fd()), t.below(dir, name, name), &was, &after, modeOf(mode))
	if err != nil && f.Mode == nil {
		return mode &^ (unix.S_ISUID | unix.S_ISGID), nil
	}
	return mode, err
}

func keep(wanted, old int) int {
	if wanted >= 0 {
		return wanted
	}
	return old
}

// copyAttributes copies the extended attributes of the old file to the new one, including the SELinux label. It leaves
// out attributes that the filesystem or the permissions of the process do not allow, as cp -a does, those that certify
// the old content, and access control lists unless lists is true.
func copyAttributes(file *os.File, old string, lists bool) {
	for name, v := range attributesOf(old) {
		if !certifies(name) && (lists || !walk.IsACL(name)) {
			_ = unix.Fsetxattr(int(file.Fd()), name, v, 0)
		}
	}
}

// certifies reports whether an attribute certifies the content: it grants capabilities, or holds a measurement. The
// kernel removes the former from a file that is written.
func certifies(name string) bool {
	return walk.IsNote(name) || name == "security.capability" || name == "security.ima" || name == "security.evm"
}

// attribute returns the value that get reads, after a call of get for its size. It returns nil if there is none.
func attribute(get func(buf []byte) (int, error)) []byte {
	size, err := get(nil)
	if err != nil || size == 0 {
		return nil
	}
	buf := make([]byte, size)
	n, err := get(buf)
	if err != nil {
		return nil
	}
	return buf[:n]
}

// syncDir syncs a directory after a rename. It returns nil for a directory that may be written but not read, which
// cannot be synced.
func syncDir(dir int) error {
	fd, err := unix.Openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	if err := unix.Fsync(fd); err != nil && !errors.Is(err, unix.EINVAL) {
		return err
	}
	return nil
}
