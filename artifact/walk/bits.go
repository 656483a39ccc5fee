package walk

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// MayRaise refuses, in a safe root, setuid and setgid bits for a file in an open directory where an unprivileged user could
// have put another program in its place, or that such a user owned: the program would run with rights that the user does
// not have. A program may run as the only user who controls the directory, or with that user's private group. was
// describes the file as it is, st as it will be with its owner and group but for the bits of mode; asked is its path in the
// error.
func (r *Root) MayRaise(dir int, asked string, was, st *unix.Stat_t, mode fs.FileMode) error {
	raw := RawMode(mode)
	setuid, setgid := raw&unix.S_ISUID != 0, raw&unix.S_ISGID != 0
	if !r.safe || st.Mode&unix.S_IFMT == unix.S_IFDIR || !setuid && !setgid {
		return nil
	}
	by, err := r.controllers(dir)
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
	return nil
}

func raised(asked string, by controller, st *unix.Stat_t) error {
	return &UnsafeError{Path: asked, Component: asked, By: by.String(), Owner: int(st.Uid), Raised: true}
}
