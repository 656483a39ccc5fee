package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// scratchPrefix starts the name of every directory of Scratch.
const scratchPrefix = "corpus-scratch-"

// Scratch makes an empty directory for one job in the system's temporary directory. The caller must call done at the
// end. If the process is killed, the next Scratch or SweepScratch of the same user removes the directory, since the
// lock on it ends with the process.
func Scratch() (dir string, done func(), err error) { return scratch(scratchParent(), scratchPrefix) }

// scratchParent returns the system's temporary directory, or else, for root, one below /var, if another user could
// exchange what is in it: it, or a directory above it, belongs to such a user, or others may write to it and it has no
// sticky bit.
func scratchParent() string {
	for _, dir := range []string{os.TempDir(), "/var/tmp", "/var/lib"} {
		if os.Geteuid() != 0 || onlyOurs(dir) {
			return dir
		}
	}
	return "/var/lib"
}

// onlyOurs reports whether only root can rename what is in a directory and above it. A directory that cannot be looked
// at is not used.
func onlyOurs(dir string) bool {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	for {
		var st unix.Stat_t
		if unix.Lstat(dir, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR || st.Uid != 0 {
			return false
		}
		shared := st.Mode&0o002 != 0 || st.Mode&0o020 != 0 && st.Gid != 0
		if shared && st.Mode&unix.S_ISVTX == 0 {
			return false
		}
		if dir == "/" {
			return true
		}
		dir = filepath.Dir(dir)
	}
}

// ScratchIn is Scratch for a directory of the caller's. If the process is killed, the next ScratchIn or SweepScratchIn
// with that directory removes what it left.
func ScratchIn(parent string) (dir string, done func(), err error) {
	return scratch(parent, tempPrefix)
}

func scratch(parent, prefix string) (dir string, done func(), err error) {
	_ = sweepScratch(parent, prefix) // directories that cannot be removed only waste disk space
	for {
		dir, err = os.MkdirTemp(parent, prefix)
		if err != nil {
			return "", nil, err
		}
		lock, err := lockDir(dir)
		if err == nil {
			return dir, func() { _ = errors.Join(removeTree(dir), lock.Close()) }, nil
		}
		if !errors.Is(err, errTaken) {
			return "", nil, errors.Join(err, os.Remove(dir))
		}
	}
}

// ScratchFile makes a temporary file without a name, which disappears when it is closed.
func ScratchFile() (*os.File, error) {
	f, err := os.CreateTemp("", scratchPrefix)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// SweepScratch removes the directories of Scratch whose processes have ended.
func SweepScratch() error { return sweepScratch(scratchParent(), scratchPrefix) }

// SweepScratchIn removes the directories of ScratchIn in parent whose processes have ended.
func SweepScratchIn(parent string) error { return sweepScratch(parent, tempPrefix) }

func sweepScratch(parent, prefix string) error {
	entries, err := os.ReadDir(parent)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var errs []error
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		dir := filepath.Join(parent, e.Name())
		lock, err := lockDir(dir)
		if errors.Is(err, errTaken) {
			continue
		}
		if err == nil {
			err = errors.Join(removeTree(dir), lock.Close())
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// errTaken is the error for a directory that belongs to another process or user, or no longer exists.
var errTaken = errors.New("the directory belongs to another process")

// lockDir locks a directory of this user until the returned file is closed.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, errTaken
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil && own(f, dir) {
		return f, nil
	}
	_ = f.Close() // nothing was written
	if err != nil && !errors.Is(err, unix.EWOULDBLOCK) {
		return nil, err
	}
	return nil, errTaken
}

// own reports whether an open file belongs to this user and still has its name.
func own(f *os.File, dir string) bool {
	opened, err := f.Stat()
	named, namedErr := os.Lstat(dir)
	if err != nil || namedErr != nil || !os.SameFile(opened, named) {
		return false
	}
	stat, ok := opened.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// removeTree removes a tree, including read-only directories. It does not remove a tree with a mount
// in it.
func removeTree(dir string) error {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // without /proc there is no list
		return err
	}
	if strings.Contains(string(mounts), " "+dir+"/") {
		return &fs.PathError{Op: "remove", Path: dir, Err: unix.EBUSY}
	}
	if err := os.RemoveAll(dir); err == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(path, 0o700) // RemoveAll reports failures
		}
		return nil
	})
	return os.RemoveAll(dir)
}
