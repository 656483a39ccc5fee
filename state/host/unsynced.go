package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// unsynced holds the filesystems with changes that are not synced yet.
type unsynced struct {
	mu   sync.Mutex
	dirs map[uint64]string // a directory in each, by its path on the machine
}

// add adds the filesystem of a directory.
func (u *unsynced) add(dir int) error {
	var st unix.Stat_t
	if err := unix.Fstat(dir, &st); err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, known := u.dirs[st.Dev]; known {
		return nil
	}
	name, err := os.Readlink(walk.Handle(dir))
	if err != nil {
		return err
	}
	if u.dirs == nil {
		u.dirs = map[uint64]string{}
	}
	u.dirs[st.Dev] = name
	return nil
}

// sync syncs each filesystem as a whole: that costs less than a sync of each changed name, and includes the files that
// programs wrote.
func (u *unsynced) sync() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	var errs []error
	for _, name := range u.dirs {
		if err := syncFilesystem(name); err != nil {
			errs = append(errs, fmt.Errorf("syncing the filesystem of %s: %w", name, err))
		}
	}
	u.dirs = nil
	return errors.Join(errs...)
}

// syncFilesystem syncs the filesystem of a directory, or that of the directory above if a later state has removed it.
func syncFilesystem(dir string) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		if (errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR)) && dir != "/" {
			return syncFilesystem(path.Dir(dir))
		}
		return err
	}
	return errors.Join(unix.Syncfs(fd), unix.Close(fd))
}

// Sync writes to the disk all changes that were made through this host, and those of programs below the given paths and
// in the filesystem of the root.
func (h *Host) Sync(paths ...string) error {
	t, ok := h.Files.(*tree)
	if !ok {
		return nil
	}
	for _, p := range append(paths, "/") {
		if err := t.touch(p); err != nil {
			return err
		}
	}
	return t.unsynced.sync()
}

// touch adds the filesystem of a path to those to be synced, if the path still exists.
func (t *tree) touch(p string) error {
	fd, err := t.openat(p, unix.O_PATH)
	if err != nil {
		return nil
	}
	return errors.Join(t.unsynced.add(fd), unix.Close(fd))
}
