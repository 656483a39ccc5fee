package walk

import (
	"errors"
	"path"

	"golang.org/x/sys/unix"
)

// errRaced is the error for a change between two steps, after which the walk must start again.
var errRaced = errors.New("a part of the path kept changing while it was opened")

// openChecked walks a path without openat2(2).
func (r *Root) openChecked(p string, flags int) (int, error) {
	for range maxRaces {
		fd, err := r.openOnce(p, flags)
		if !errors.Is(err, errRaced) {
			return fd, err
		}
	}
	return -1, unix.EAGAIN
}

func (r *Root) openOnce(p string, flags int) (int, error) {
	w := newWalker(r, p)
	defer w.close()
	if err := w.walk(flags&unix.O_NOFOLLOW == 0); err != nil {
		return -1, w.lost(err)
	}
	dir := w.here()
	fd, err := RetryOpen(func() (int, error) { return unix.Openat(dir.fd, w.last, flags|unix.O_NOFOLLOW, 0) })
	if flags&unix.O_NOFOLLOW == 0 {
		fd, err = w.sameKind(fd, err)
	}
	if err != nil {
		return -1, w.lost(err)
	}
	if err := w.arrived(fd); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// Follow is like Parent with the links at the end of the path followed; their target need not exist. In a safe root, a
// link to a missing target must lead into a directory of the user who controls the link.
func (r *Root) Follow(p string) (*Dir, string, error) {
	d, name, linked, err := r.plainly(p)
	if err != nil || !linked {
		return d, name, err
	}
	for range maxRaces {
		d, name, err := r.followOnce(p)
		if !errors.Is(err, errRaced) {
			return d, name, pathError("open", p, err)
		}
	}
	return nil, "", pathError("open", p, unix.EAGAIN)
}

// plainly is like Follow for a path whose last name is not a link; otherwise linked is true.
func (r *Root) plainly(p string) (d *Dir, name string, linked bool, err error) {
	if d, name, err = r.Parent(p); err != nil || name == "." {
		return d, name, false, err
	}
	st, err := d.Lstat(name)
	switch {
	case errors.Is(err, unix.ENOENT):
		return d, name, false, nil
	case err == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK:
		return nil, "", true, d.Close()
	case err == nil:
		err = r.OwnName(d.FD(), p, &st)
	}
	if err != nil {
		return nil, "", false, errors.Join(err, d.Close())
	}
	return d, name, false, nil
}

// Resolve returns the target of the links at the end of a path, which need not exist. A path whose last name is not a
// link is returned unchanged; any other result contains no links in the part that exists. It returns the same errors as
// Follow.
func (r *Root) Resolve(p string) (string, error) {
	d, _, linked, err := r.plainly(p)
	switch {
	case errors.Is(err, unix.ENOENT):
		return p, nil
	case err != nil:
		return "", err
	case !linked:
		return p, d.Close()
	}
	for range maxRaces {
		real, err := r.resolveOnce(p)
		if !errors.Is(err, errRaced) {
			return real, pathError("open", p, err)
		}
	}
	return "", pathError("open", p, unix.EAGAIN)
}

func (r *Root) resolveOnce(p string) (string, error) {
	w := newWalker(r, p)
	defer w.close()
	err := w.walk(true)
	if err == nil {
		if err = w.end(); err == nil {
			return path.Join(w.here().name, w.last), nil
		}
		return "", err
	}
	rest := w.rest()
	if err := w.lost(err); !errors.Is(err, unix.ENOENT) {
		return "", err
	}
	return rest, nil
}

func (r *Root) followOnce(p string) (*Dir, string, error) {
	w := newWalker(r, p)
	defer w.close()
	if err := w.walk(true); err != nil {
		return nil, "", w.lost(err)
	}
	if err := w.end(); err != nil {
		return nil, "", err
	}
	fd, err := unix.FcntlInt(uintptr(w.here().fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, "", err
	}
	return newDir(r, fd, w.here().name), w.last, nil
}
