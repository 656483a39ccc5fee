package walk

import "golang.org/x/sys/unix"

// Loop is the error of a path that is not followed to its end: its links form a loop, there are too many of them, or a
// link is where none is followed.
type Loop struct{ Path string }

func (e *Loop) Error() string { return unix.ELOOP.Error() }

// Unwrap returns the error of the kernel.
func (e *Loop) Unwrap() error { return unix.ELOOP }

// Hint returns how to find the link.
func (e *Loop) Hint() string { return LoopHint(e.Path) }

// LoopHint returns a hint to find the link in a path that is not followed to its end.
func LoopHint(path string) string {
	return "links in the path form a loop, or a link is where none is followed; find it with: namei -l " + path
}
