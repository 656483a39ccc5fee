package host

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

func (t *tree) Write(p string, f NewFile) error {
	real, err := t.behind(p)
	if err != nil {
		return pathError("write", p, err)
	}
	return t.write("write", real, func(dir int, name string) error { return replace(dir, name, f) })
}

const maxHops = 40

// behind follows the links at the end of a path, so that what they lead to is replaced and they
// are not.
func (t *tree) behind(p string) (string, error) {
	for range maxHops {
		target, err := t.Readlink(p)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, fs.ErrNotExist) {
			return p, nil
		}
		if err != nil {
			return "", err
		}
		if !path.IsAbs(target) {
			target = path.Join(path.Dir(p), target)
		}
		p = target
	}
	return "", unix.ELOOP
}

func tempName(name string) string {
	return path.Join(path.Dir(name), fmt.Sprintf(".corpus-tmp-%d-%08x", os.Getpid(), rand.Uint32()))
}

// replace writes a temporary file beside the target, makes it like the old one, and renames it.
// File and directory are synced: after a power cut the name has one content or the other.
func replace(dir int, name string, f NewFile) (err error) {
	temp := tempName(name)
	fd, err := retry(func() (int, error) {
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
	if err := errors.Join(fill(file, dir, name, f), file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := unix.Renameat(dir, temp, dir, name); err != nil {
		return err
	}
	return syncParent(dir, name)
}

// fill gives the temporary file its content and, before it has its name, what it must be.
func fill(file *os.File, dir int, name string, f NewFile) error {
	if _, err := io.Copy(file, f.Content); err != nil {
		return err
	}
	uid, gid, mode := f.UID, f.GID, defaultMode()
	var old unix.Stat_t
	err := unix.Fstatat(dir, name, &old, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case err == nil:
		mode = old.Mode & 0o7777
		uid, gid = keep(uid, int(old.Uid)), keep(gid, int(old.Gid))
		copyAttributes(file, dir, name)
	case !errors.Is(err, unix.ENOENT):
		return err
	}
	if f.Mode != nil {
		mode = rawMode(*f.Mode)
	}
	fd := int(file.Fd())
	if err := unix.Fchown(fd, uid, gid); err != nil && os.Geteuid() == 0 {
		return err
	}
	return unix.Fchmod(fd, mode) // after chown, which clears setuid
}

func keep(wanted, old int) int {
	if wanted >= 0 {
		return wanted
	}
	return old
}

// defaultMode is what a new file gets from open(2) with 0666.
func defaultMode() uint32 { return 0o666 &^ umask() }

// copyAttributes gives the new file the extended attributes of the old, its SELinux label among
// them. One that the filesystem or our rights do not allow is left out, as cp -a does.
func copyAttributes(file *os.File, dir int, name string) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	names := make([]byte, 4096)
	n, err := unix.Flistxattr(fd, names)
	if err != nil {
		return
	}
	for attribute := range splitNames(names[:n]) {
		v := make([]byte, 64<<10)
		if n, err := unix.Fgetxattr(fd, attribute, v); err == nil {
			_ = unix.Fsetxattr(int(file.Fd()), attribute, v[:n], 0)
		}
	}
}

// splitNames yields zero-terminated names.
func splitNames(b []byte) func(func(string) bool) {
	return func(yield func(string) bool) {
		start := 0
		for i, c := range b {
			if c == 0 {
				if !yield(string(b[start:i])) {
					return
				}
				start = i + 1
			}
		}
	}
}

func syncParent(dir int, name string) error {
	fd, err := unix.Openat(dir, path.Dir(name), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Fsync(fd); err != nil && !errors.Is(err, unix.EINVAL) {
		return err
	}
	return nil
}
