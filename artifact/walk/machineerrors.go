package walk

import (
	"errors"
	"io/fs"
	"strings"
	"sync"
	"syscall"
)

// MachineErrors collects errors that mean that the machine is at fault: a failing disk (EIO), no more open files
// (EMFILE, ENFILE), no memory (ENOMEM). Such an error says nothing about the file itself, so code that treats every
// error as "does not exist", like `err == nil`, is wrong about it. A path that a safe root refuses (UnsafeError) is
// collected for the same reason. The caller of such code checks the MachineErrors afterwards. A nil MachineErrors
// collects nothing. It is safe for concurrent use.
type MachineErrors struct {
	mu   sync.Mutex
	errs []error
}

// Note collects an error about a path, if it is one of the above, and returns it. Reading some files of the kernel
// fails with EIO by design, so below /proc, /sys and /dev only a lack of open files and refusals count.
func (t *MachineErrors) Note(path string, err error) error {
	if t == nil || !lacking(path, err) {
		return err
	}
	noted := err
	var named *fs.PathError
	var refused *UnsafeError
	if !errors.As(err, &named) && !errors.As(err, &refused) {
		noted = &fs.PathError{Op: "reading", Path: path, Err: err}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.errs = append(t.errs, noted)
	return err
}

func lacking(path string, err error) bool {
	var refused *UnsafeError
	if errors.As(err, &refused) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		return true
	}
	for _, kernel := range []string{"/proc/", "/sys/", "/dev/"} {
		if strings.HasPrefix(path, kernel) {
			return false
		}
	}
	return errors.Is(err, syscall.EIO) || errors.Is(err, syscall.ENOMEM)
}

// Mark returns the number of errors so far, for Since.
func (t *MachineErrors) Mark() int {
	if t == nil {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.errs)
}

// Since returns the first error after a mark, or nil.
func (t *MachineErrors) Since(mark int) error {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if mark >= len(t.errs) {
		return nil
	}
	return t.errs[mark]
}
