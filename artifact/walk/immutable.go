package walk

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Immutable is the error for a change that the kernel refuses even to root, since the file, or the directory that it is
// in, is immutable or can only be appended to: the attributes i and a of chattr(1).
type Immutable struct {
	Directory bool // it is the directory that has the attribute
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

// Unwrap is what the kernel says.
func (e *Immutable) Unwrap() error { return unix.EPERM }

// Flag is the attribute as chattr(1) writes it.
func (e *Immutable) Flag() string {
	if e.Append {
		return "a"
	}
	return "i"
}

// ExplainPermission returns an Immutable for an EPERM that an attribute of a file, or of the directory that is open as
// dir, accounts for; any other error as it is.
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

// protection is which of the two attributes a file has, as far as its filesystem says so.
func protection(dir int, name string, flags int) uint64 {
	var st unix.Statx_t
	if unix.Statx(dir, name, flags, unix.STATX_BASIC_STATS, &st) != nil {
		return 0
	}
	return st.Attributes & (unix.STATX_ATTR_IMMUTABLE | unix.STATX_ATTR_APPEND)
}
