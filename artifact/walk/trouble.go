package walk

import (
	"errors"
	"io/fs"
	"strings"
	"sync"
	"syscall"
)

// Trouble remembers the errors of a machine that lacks something: a disk that fails (EIO), no more open files (EMFILE,
// ENFILE), no memory (ENOMEM). Such an error says nothing about the file that was looked for, so code that takes any
// error for an answer, as `err == nil` does, is wrong about it. A path that a safe root refuses (UnsafeError) is
// remembered as well, for the same reason. The caller who set such code to work asks here afterwards. A nil Trouble
// remembers nothing. It is safe for concurrent use.
type Trouble struct {
	mu   sync.Mutex
	errs []error
}

// Note remembers an error of a path, if it is one of the machine or a refusal, and returns it. Reading some files of
// the kernel fails with EIO by design; below /proc, /sys and /dev only a lack of open files counts.
func (t *Trouble) Note(path string, err error) error {
	if t == nil || !lacking(path, err) {
		return err
	}
	told := err
	var named *fs.PathError
	var refused *UnsafeError
	if !errors.As(err, &named) && !errors.As(err, &refused) {
		told = &fs.PathError{Op: "reading", Path: path, Err: err}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.errs = append(t.errs, told)
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

// Mark is a moment, for Since.
func (t *Trouble) Mark() int {
	if t == nil {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.errs)
}

// Since is the first error after a moment, or nil.
func (t *Trouble) Since(mark int) error {
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
