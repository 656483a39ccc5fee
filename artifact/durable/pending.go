package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// lockedPrefix starts the name of a temporary file that is locked by its process. Sweep matches it too.
const lockedPrefix = tempPrefix + "w-"

// Pending is a file that is written before it gets its name. If the filesystem supports files without a name
// (O_TMPFILE), a killed process leaves nothing. Otherwise, and during Commit, a killed process leaves a temporary file,
// which SweepAbandoned removes, since the lock on it ends with the process.
type Pending struct {
	*os.File
	path string
	temp string // its temporary name; "" if it has none
}

// Create makes a file that Commit renames to path. The caller must close it in any case.
func Create(path string) (*Pending, error) {
	if f, err := unnamed(filepath.Dir(path)); err == nil {
		return &Pending{File: f, path: path}, nil
	}
	f, err := locked(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	return &Pending{File: f, path: path, temp: f.Name()}, nil
}

// unnamed makes a file without a name that can be linked later, which needs /proc.
func unnamed(dir string) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), dir)
	if _, err := os.Lstat(self(f)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	_ = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) // protects it from sweeps while it has a temporary name
	return f, nil
}

// self returns a path to an open file.
func self(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }

// locked makes a file with a temporary name and locks it. It first removes the files that killed processes have left.
// On filesystems without locks none are removed.
func locked(dir string) (*os.File, error) {
	_ = SweepAbandoned(dir) // files that cannot be removed only waste disk space
	for {
		f, err := os.CreateTemp(dir, lockedPrefix)
		if err != nil {
			return nil, err
		}
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err != nil && !errors.Is(err, unix.EWOULDBLOCK) || err == nil && own(f, f.Name()) {
			return f, nil
		}
		_ = f.Close() // a sweep took the lock first
	}
}

// Commit sets the file's mode and renames it to its path. With sync, mode, name and content survive a power failure.
func (p *Pending) Commit(mode fs.FileMode, sync bool) error {
	err := p.Chmod(mode)
	if sync {
		err = errors.Join(err, p.Sync())
	}
	if err == nil && p.temp == "" {
		err = p.name()
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", p.path, err)
	}
	if err := os.Rename(p.temp, p.path); err != nil {
		return err
	}
	p.temp = ""
	if sync {
		return SyncDir(filepath.Dir(p.path))
	}
	return nil
}

// name links an unnamed file to a temporary name, since link(2) does not replace an existing file, but rename(2) does.
// If linking is forbidden, for example by a security module, the content is copied.
func (p *Pending) name() error {
	for n := os.Getpid(); ; n++ {
		temp := filepath.Join(filepath.Dir(p.path), fmt.Sprintf("%s%d", lockedPrefix, n))
		err := unix.Linkat(unix.AT_FDCWD, self(p.File), unix.AT_FDCWD, temp, unix.AT_SYMLINK_FOLLOW)
		switch {
		case err == nil:
			p.temp = temp
			return nil
		case !errors.Is(err, fs.ErrExist):
			return p.copied()
		}
	}
}

func (p *Pending) copied() error {
	info, err := p.Stat()
	if err != nil {
		return err
	}
	f, err := locked(filepath.Dir(p.path))
	if err != nil {
		return err
	}
	from := p.File
	p.File, p.temp = f, f.Name()
	_, err = io.Copy(f, io.NewSectionReader(from, 0, info.Size()))
	return errors.Join(err, f.Chmod(info.Mode().Perm()), f.Sync(), from.Close())
}

// Close closes the file, and removes it unless it was committed.
func (p *Pending) Close() error {
	var err error
	if p.temp != "" {
		err = os.Remove(p.temp)
		p.temp = ""
	}
	return errors.Join(err, p.File.Close())
}

// SweepAbandoned removes temporary files of Create whose processes have ended from a directory in which other processes
// may be writing.
func SweepAbandoned(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var errs []error
	for _, e := range entries {
		if e.Type().IsRegular() && strings.HasPrefix(e.Name(), lockedPrefix) {
			errs = append(errs, sweepFile(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}

func sweepFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil //nolint:nilerr // it no longer exists, or belongs to another user
	}
	defer f.Close()
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil || !own(f, path) {
		return nil
	}
	return os.Remove(path)
}
