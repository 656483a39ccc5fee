package lock

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// This file prevents concurrent runs if the lock file is removed while a run holds its lock.

// watchEvery is the interval at which Watch checks the lock file.
const watchEvery = time.Second

// Watch checks every second whether the locked file is still at its path, until stop is called. If it was removed or
// replaced, Watch also locks the file that is now at the path, and calls lost once each time.
func (l *Lock) Watch(lost func()) (stop func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
				if l.again() {
					lost()
				}
			}
		}
	}()
	return func() { close(over); <-ended }
}

// again locks the file at the path if that is no longer the locked one, and reports whether it did. If locking fails,
// the next check retries it; until then ofRemoved finds this process.
func (l *Lock) again() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.readOnly || isAt(l.file, l.path) {
		return false
	}
	now := &Lock{path: l.path, holder: l.holder}
	if now.lockFile() != nil {
		return false
	}
	l.older, l.file = append(l.older, l.file), now.file
	return true
}

// isAt reports whether an open file is the one at a path. It returns true if the path cannot be examined.
func isAt(f *os.File, path string) bool {
	mine, err := f.Stat()
	if err != nil {
		return true
	}
	there, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	return err != nil || os.SameFile(mine, there)
}

// ofRemoved returns the holder of the lock of a file that was removed from path. It finds none if the kernel does not
// list locks, or if this user may not examine the process.
func ofRemoved(path string) (Holder, bool) {
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		dir = filepath.Dir(path)
	}
	removed := filepath.Join(dir, filepath.Base(path)) + " (deleted)"
	for _, pid := range flocks("WRITE", "") {
		files, _ := filepath.Glob("/proc/" + pid + "/fd/*") // empty for a process that has ended
		for _, file := range files {
			if to, err := os.Readlink(file); err == nil && to == removed {
				if h, held := heldIn(file); held {
					return h, true
				}
			}
		}
	}
	return Holder{}, false
}

// heldIn reads the Holder in a removed file, by the name of its descriptor in /proc, and reports whether it is a lock
// of this user that a process holds. Another user may have a file of the same name in a mount namespace of that user,
// but not with this owner and mode.
func heldIn(file string) (h Holder, held bool) {
	info, err := os.Stat(file)
	if err != nil || info.Mode() != 0o600 {
		return h, false
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || st.Uid != uint32(os.Geteuid()) {
		return h, false
	}
	f, err := os.Open(file)
	if err != nil {
		return h, false
	}
	defer f.Close()
	_ = json.NewDecoder(f).Decode(&h) // a file that is just being written counts as unknown
	return h, errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}
