package walk

import (
	"errors"
	"path"

	"golang.org/x/sys/unix"
)

// ByName returns an error, in a safe root, for a path whose meaning an unprivileged user can change: one with a link
// that such a user controls, or below a directory that such a user owns or may write to. A program that is given a path
// walks it again, so checking the present target of the path protects nothing. The path's target may belong to a user,
// and need not exist.
func (r *Root) ByName(p string) error {
	if !r.safe {
		return nil
	}
	steady := *r
	steady.steady = true
	for range maxRaces {
		err := steady.byNameOnce(path.Clean(p))
		if !errors.Is(err, errRaced) {
			return pathError("open", p, err)
		}
	}
	return pathError("open", p, unix.EAGAIN)
}

func (r *Root) byNameOnce(p string) error {
	if err := wellFormed(p); err != nil {
		return err
	}
	w := newWalker(r, p)
	defer w.close()
	err := w.walk(true)
	if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR) { // the program reports these itself
		return err
	}
	above := w.way
	if err == nil && w.last == "." { // the walk has entered the target
		above = above[:len(above)-1]
	}
	for _, s := range above {
		by, err := r.controllers(s.fd)
		if err != nil {
			return err
		}
		if len(by) > 0 {
			return r.unsteady(p, s.name, by[0])
		}
	}
	if len(above) == 0 {
		return nil
	}
	return r.inSticky(p, above[len(above)-1], path.Base(w.name))
}

// inSticky returns an error for a name in a sticky directory that a user owns or could create.
func (r *Root) inSticky(p string, dir step, name string) error {
	var in, st unix.Stat_t
	if err := unix.Fstat(dir.fd, &in); err != nil || in.Mode&unix.S_ISVTX == 0 || in.Mode&0o022 == 0 {
		return err
	}
	err := unix.Fstatat(dir.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case errors.Is(err, unix.ENOENT), err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR && st.Nlink > 1:
		return r.unsteady(p, dir.name, controller{kind: 'o'})
	case err == nil && r.unprivileged(st.Uid):
		return r.unsteady(p, path.Join(dir.name, name), controller{kind: 'u', id: st.Uid})
	}
	return err
}

func (r *Root) unsteady(p, component string, by controller) error {
	return &UnsafeError{Path: p, Component: component, By: by.String(), Program: true}
}

// Changer returns an unprivileged party that can change what is at a path, by any part of the way to it, and the path
// that it controls; "" if there is none. With content, those who can change the content of the object count as well.
// The root need not be safe, and the path need not exist.
func (r *Root) Changer(p string, content bool) (by, at string) {
	all := r.unanchored()
	all.safe = true
	for p = path.Clean(p); ; p = path.Dir(p) {
		err := all.ByName(p)
		if err == nil && content {
			err = all.Source(p, Trust{})
		}
		var refused *UnsafeError
		if errors.As(err, &refused) {
			return refused.By, refused.Component
		}
		if err == nil || p == "/" || p == "." {
			return "", ""
		}
	}
}
