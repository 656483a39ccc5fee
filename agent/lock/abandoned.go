package lock

import (
	"syscall"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// Abandoned returns the holder of a lock that the kernel released because its process ended without Release, as after
// kill -9 or a power failure. The file still names that process then. Abandoned returns false while the lock is held.
func Abandoned(path string) (Holder, bool) {
	f, err := walk.OpenFile(path)
	if err != nil {
		return Holder{}, false
	}
	defer f.Close()
	if syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) != nil {
		return Holder{}, false
	}
	if _, alive := ofRemoved(path); alive {
		return Holder{}, false
	}
	h := read(path) // no run begins or ends while this process has the shared lock
	return h, h.PID != 0
}
