package walk

import (
	"cmp"
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
		if c.refuses(st, raw) {
			return raised(asked, c, st, false)
		}
	}
	if r.unprivileged(was.Uid) && (setuid && st.Uid != was.Uid || setgid && st.Gid != was.Gid) {
		// The owner can change the group of the file, but not the owner.
		return raised(asked, controller{kind: 'u', id: was.Uid}, st, setuid && st.Uid != was.Uid)
	}
	if uid, is := noted(file); is && st.Uid != uid {
		return raised(asked, controller{kind: 'u', id: uid}, st, true)
	}
	return nil
}

// above returns the parties that control an open directory, or one above it up to the top of the root.
func (r *Root) above(dir int) (by []controller, err error) {
	err = r.upwards(dir, func(at int) error {
		more, err := r.controllers(at)
		by = append(by, more...)
		return err
	})
	return by, err
}

// upwards calls a function for an open directory, and for each one above it up to the top of the root.
func (r *Root) upwards(dir int, visit func(at int) error) error {
	at, err := unix.FcntlInt(uintptr(dir), unix.F_DUPFD_CLOEXEC, 0)
	for err == nil {
		if err = visit(at); err != nil {
			break
		}
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
	return err
}

// refuses reports whether a file with these attributes must not be setuid or setgid if c controls its directory.
func (c controller) refuses(st *unix.Stat_t, raw uint32) bool {
	return c.kind != 'u' || raw&unix.S_ISUID != 0 && st.Uid != c.id || raw&unix.S_ISGID != 0 && st.Gid != c.id
}

func raised(asked string, by controller, st *unix.Stat_t, ofOwner bool) error {
	return &UnsafeError{Path: asked, Component: asked, By: by.String(), Owner: int(st.Uid), Raised: true, OfOwner: ofOwner}
}

// MayDeclare returns an error, in a safe root, for setuid and setgid bits that a release declares for a file at a path,
// if the first directory of the path that an unprivileged user can write to decides against them: by its owner, or by
// its mode if it belongs to a privileged user. It depends on what is declared (program) and on what only privileged
// users can change, and neither on the file nor on what else such a user creates there. What that user decides is for
// MayRaise.
func (r *Root) MayDeclare(p string, program *unix.Stat_t) error {
	all := r.unanchored()
	for end := 0; r.safe && end < len(p); end++ {
		if p[end] != '/' {
			continue
		}
		by, err := all.deciding(cmp.Or(p[:end], "/"))
		if err != nil {
			return nil //nolint:nilerr // the caller finds it as well
		}
		for _, c := range by {
			if c.refuses(program, program.Mode) {
				return raised(p, c, program, false)
			}
		}
		if by != nil {
			return nil
		}
	}
	return nil
}

// deciding returns the parties that control the first directory on the way to a directory, links followed, that
// unprivileged users can write to: its owner alone, if unprivileged. It returns none for a sticky directory, in which
// the directory below may be such a user's. The list is nil if there is no such directory.
func (r *Root) deciding(dir string) (by []controller, err error) {
	fd, err := r.Openat(dir, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	err = r.upwards(fd, func(at int) error {
		var st unix.Stat_t
		if err := unix.Fstat(at, &st); err != nil {
			return err
		}
		all, err := r.controllersOf(at, &st)
		switch {
		case r.unprivileged(st.Uid):
			by = []controller{{kind: 'u', id: st.Uid}}
		case st.Mode&unix.S_ISVTX != 0 && st.Mode&0o022 != 0:
			by = []controller{}
		case len(all) > 0:
			by = all
		}
		return err
	})
	return by, err
}
