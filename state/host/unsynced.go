package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// unsynced are directories in which names were changed that a power cut could still take back. What a
// recorder was told is kept all the same, so nothing is lost by that but work.
type unsynced struct {
	mu   sync.Mutex
	dirs map[string]bool // as the machine calls them
}

func (u *unsynced) add(dir int) error {
	name, err := os.Readlink(handle(dir))
	if err != nil {
		return syncDir(dir)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.dirs == nil {
		u.dirs = map[string]bool{}
	}
	u.dirs[name] = true
	return nil
}

func (u *unsynced) sync() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	var errs []error
	for name := range u.dirs {
		dir, err := unix.Open(name, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
			continue // a later state took it away
		}
		if err == nil {
			err = errors.Join(syncDir(dir), unix.Close(dir))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("syncing %s: %w", name, err))
		}
	}
	u.dirs = nil
	return errors.Join(errs...)
}

// Sync returns when no power cut can take back what was written. Only a host with a recorder leaves
// anything to be synced.
func (h *Host) Sync() error {
	if t, ok := h.Files.(*tree); ok {
		return t.unsynced.sync()
	}
	return nil
}
