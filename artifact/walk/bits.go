package walk

import (
	"errors"
	"io/fs"
	"path"
	"slices"

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
			return raised(asked, c, st, raw)
		}
	}
	if r.unprivileged(was.Uid) && (setuid && st.Uid != was.Uid || setgid && st.Gid != was.Gid) {
		return raised(asked, controller{kind: 'u', id: was.Uid}, st, raw)
	}
	if uid, is := noted(file); is && st.Uid != uid {
		return raised(asked, controller{kind: 'u', id: uid}, st, raw)
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

// refuses reports whether a file with these attributes must not be setuid or setgid if c controls its directory.
func (c controller) refuses(st *unix.Stat_t, raw uint32) bool {
	return c.kind != 'u' || raw&unix.S_ISUID != 0 && st.Uid != c.id || raw&unix.S_ISGID != 0 && st.Gid != c.id
}

func raised(asked string, by controller, st *unix.Stat_t, raw uint32) error {
	after := *st
	after.Mode = after.Mode&unix.S_IFMT | raw
	return &UnsafeError{Path: asked, Component: asked, By: by.String(), Owner: int(st.Uid), Raised: true, program: &after}
}

// Lasting reports whether MayRaise refuses a file at the path p whatever unprivileged users do: because of the owner of
// the first directory of the path that such a user controls, or because of its mode, if it belongs to a privileged
// user. The caller checks that the path and the mode were asked for by the release, and not by such a user.
func (r *Root) Lasting(p string, refused *UnsafeError) bool {
	if !refused.Raised || refused.program == nil {
		return false
	}
	all := r.unanchored()
	all.safe = true
	err := all.ByName(p)
	var first *UnsafeError
	if !errors.As(err, &first) {
		return err == nil
	}
	return first.Component != path.Clean(p) && all.decides(first.Component, refused.program)
}

// decides reports whether the owner of a directory, or its mode if it belongs to a privileged user, is the reason to
// refuse setuid or setgid bits in it. An unprivileged user could have made a directory in a sticky one.
func (r *Root) decides(dir string, program *unix.Stat_t) bool {
	var st unix.Stat_t
	for above := dir; ; above = path.Dir(above) {
		fd, err := r.Openat(above, unix.O_PATH|unix.O_DIRECTORY)
		if err != nil {
			return false
		}
		err = unix.Fstat(fd, &st)
		_ = unix.Close(fd) // opened with O_PATH
		if err != nil || above != dir && st.Mode&unix.S_ISVTX != 0 && st.Mode&0o022 != 0 {
			return false
		}
		if above == "/" {
			break
		}
	}
	fd, err := r.Openat(dir, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	if err := unix.Fstat(fd, &st); err != nil {
		return false
	}
	if r.unprivileged(st.Uid) {
		return controller{kind: 'u', id: st.Uid}.refuses(program, program.Mode)
	}
	by, err := r.controllersOf(fd, &st)
	return err == nil && slices.ContainsFunc(by, func(c controller) bool { return c.refuses(program, program.Mode) })
}
