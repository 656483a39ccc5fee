package walk

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// MayRaise returns an error, in a safe root, for setuid and setgid bits on a file whose content may come from an
// unprivileged user: the user controls its open directory or one above it, or owns the file, now or before the agent
// gave it to another user. Otherwise the program would run with rights that the user does not have. A program may run
// as the only user who controls the directory, or with that user's private group. was describes the present file, st
// has its future owner and group but not the bits of mode; asked is its path in the error, and file the open file.
func (r *Root) MayRaise(dir, file int, asked string, was, st *unix.Stat_t, mode fs.FileMode) error {
	raw := RawMode(mode)
	setuid, setgid := raw&unix.S_ISUID != 0, raw&unix.S_ISGID != 0
	if !r.safe || st.Mode&unix.S_IFMT == unix.S_IFDIR || !setuid && !setgid {
		return nil
	}
	by, err := r.above(dir)
	if err != nil {
		return err
	}
	for _, c := range by {
		if c.kind != 'u' || setuid && st.Uid != c.id || setgid && st.Gid != c.id {
			return raised(asked, c, st)
		}
	}
	if r.unprivileged(was.Uid) && (setuid && st.Uid != was.Uid || setgid && st.Gid != was.Gid) {
		return raised(asked, controller{kind: 'u', id: was.Uid}, st)
	}
	if uid, is := noted(file); is && st.Uid != uid {
		return raised(asked, controller{kind: 'u', id: uid}, st)
	}
	return nil
}

// above returns the parties that control an open directory, or one above it up to the top of the root.
func (r *Root) above(dir int) (by []controller, err error) {
	at, err := unix.FcntlInt(uintptr(dir), unix.F_DUPFD_CLOEXEC, 0)
	for err == nil {
		var more []controller
		if more, err = r.controllers(at); err != nil {
			break
		}
		by = append(by, more...)
		var here, next fileID
		if here, err = idOf(at); err != nil || here == r.top {
			break
		}
		up, failed := unix.Openat(at, "..", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err = failed; err != nil {
			break
		}
		_ = unix.Close(at) // opened with O_PATH
		at = up
		if next, err = idOf(at); next == here {
			break
		}
	}
	if at >= 0 {
		_ = unix.Close(at)
	}
	return by, err
}

func raised(asked string, by controller, st *unix.Stat_t) error {
	return &UnsafeError{Path: asked, Component: asked, By: by.String(), Owner: int(st.Uid), Raised: true}
}
