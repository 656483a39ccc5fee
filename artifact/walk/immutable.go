package walk

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Immutable is the error for a change that the kernel denies even to root, since the file, or its directory, is
// immutable or can only be appended to: the attributes i and a of chattr(1).
type Immutable struct {
	Directory bool // the directory has the attribute, not the file
	Append    bool // the attribute is a, not i
}

func (e *Immutable) Error() string {
	what := "it is"
	if e.Directory {
		what = "its directory is"
	}
	if e.Append {
		return unix.EPERM.Error() + ": " + what + " append-only"
	}
	return unix.EPERM.Error() + ": " + what + " immutable"
}

// Unwrap returns the error of the kernel.
func (e *Immutable) Unwrap() error { return unix.EPERM }

// Flag returns the attribute in the notation of chattr(1).
func (e *Immutable) Flag() string {
	if e.Append {
		return "a"
	}
	return "i"
}

// ExplainPermission returns an Immutable for an EPERM that is caused by an attribute of a file, or of its directory,
// which is open as dir; any other error unchanged.
func ExplainPermission(err error, dir int, name string) error {
	var known *Immutable
	if !errors.Is(err, unix.EPERM) || errors.As(err, &known) {
		return err
	}
	if flags := protection(dir, name, unix.AT_SYMLINK_NOFOLLOW); flags != 0 {
		return &Immutable{Append: flags&unix.STATX_ATTR_IMMUTABLE == 0}
	}
	if flags := protection(dir, "", unix.AT_EMPTY_PATH); flags != 0 {
		return &Immutable{Directory: true, Append: flags&unix.STATX_ATTR_IMMUTABLE == 0}
	}
	return err
}

// protection returns the attributes of a file that prevent changes, as far as its filesystem reports them.
func protection(dir int, name string, flags int) uint64 {
	var st unix.Statx_t
	if unix.Statx(dir, name, flags, unix.STATX_BASIC_STATS, &st) != nil {
		return 0
	}
	return st.Attributes & (unix.STATX_ATTR_IMMUTABLE | unix.STATX_ATTR_APPEND)
}
