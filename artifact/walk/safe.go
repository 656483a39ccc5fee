package walk

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Following returns a root like r that follows every link. It shares the directory of r, so it must not be used after r
// is closed.
func (r *Root) Following() *Root {
	other := r.unanchored()
	other.safe = false
	return other
}

// As returns a root like r for a process with the rights of a user: links that this user controls can only mislead the
// user's own processes, so they are followed. It shares the directory of r, so it must not be used after r is closed.
func (r *Root) As(uid uint32) *Root {
	other := r.unanchored()
	other.trusted = int(uid)
	return other
}

// Safe reports whether the root refuses unsafe steps.
func (r *Root) Safe() bool { return r.safe }

// OwnName returns an error, in a safe root, for a name in an open directory that a user may have given to a file of
// another user: a file with several names that a user who controls the directory does not own. st describes the file,
// and asked is its path in the error. Directories have only one name.
func (r *Root) OwnName(dir int, asked string, st *unix.Stat_t) error {
	if !r.safe || st.Mode&unix.S_IFMT == unix.S_IFDIR || st.Nlink < 2 {
		return nil
	}
	by, err := r.controllers(dir)
	if err != nil {
		return err
	}
	return ownName(asked, asked, st, by)
}

// Fixed reports whether a name leads to a directory that no unprivileged user can replace: no link is on the way, and
// such users neither own nor may write to a directory above it, nor can rename a part of it in a sticky directory. A
// program may use such a directory by its name. If it returns false, the directory may exist or not.
func (r *Root) Fixed(p string) bool {
	if path.Clean(p) != p || wellFormed(p) != nil {
		return false
	}
	plain := *r
	plain.safe, plain.noLinks = false, true
	w := newWalker(&plain, p+"/.")
	defer w.close()
	if w.walk(false) != nil {
		return false
	}
	sticky := false
	for i, s := range w.way {
		var st unix.Stat_t
		if unix.Fstat(s.fd, &st) != nil || sticky && r.unprivileged(st.Uid) {
			return false
		}
		if i < len(w.way)-1 {
			if by, err := r.controllersOf(s.fd, &st); err != nil || len(by) > 0 {
				return false
			}
		}
		sticky = st.Mode&unix.S_ISVTX != 0
	}
	return true
}

// pendingLink is a link whose target must still be checked.
type pendingLink struct {
	left int // number of names that remain when the link is resolved
	link string
	by   []controller
}

// openSafely opens a path and refuses unsafe steps. If the kernel finds no link, no step is unsafe.
func (r *Root) openSafely(p string, flags int) (int, error) {
	if !r.kernel {
		return r.openChecked(p, flags)
	}
	fd, several, err := r.openPlain(p, flags)
	if err == nil && !several {
		return fd, nil
	}
	if err == nil {
		_ = unix.Close(fd)
	} else if !errors.Is(err, unix.ELOOP) && !errors.Is(err, unix.EAGAIN) {
		return -1, err
	}
	return r.openChecked(p, flags)
}

// openPlain opens a path without links with openat2(2), and reports whether the opened file may have several names. A
// file is opened in two steps, since counting its names needs its directory.
func (r *Root) openPlain(p string, flags int) (fd int, several bool, err error) {
	way, name, err := Split(p)
	if err != nil {
		return -1, false, err
	}
	if flags&unix.O_DIRECTORY != 0 || name == "." || strings.HasSuffix(p, "/") { // a directory has one name
		fd, err = r.openat2(p, flags, unix.RESOLVE_NO_SYMLINKS)
		return fd, false, err
	}
	dir, err := r.openat2(way, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, unix.RESOLVE_NO_SYMLINKS)
	if err != nil {
		return -1, false, err
	}
	defer unix.Close(dir)
	if fd, err = openat2(dir, name, flags, unix.RESOLVE_NO_SYMLINKS); err != nil {
		return -1, false, err
	}
	var st unix.Stat_t
	err = StatNames(dir, name, fd, &st)
	return fd, err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR && st.Nlink > 1, nil
}

// StatNames is like fstat(2) of a file that was opened by a name in a directory, except that a file which has lost that
// name, or is losing it, is reported to have two names. A user can give a file of another user a name, and remove the
// name between the moment when it is opened and the moment when its names are counted.
//
// The kernel stores for a descriptor the name by which it was opened, and whether that name is gone. But it decrements
// the count before it removes the name, and keeps the directory locked in the meantime. So the names are counted first;
// then reading the directory waits for the lock; and then the name is checked. A file that was moved to another
// directory is reported to have two names as well.
func StatNames(dir int, name string, fd int, st *unix.Stat_t) error {
	if err := unix.Fstat(fd, st); err != nil || st.Mode&unix.S_IFMT == unix.S_IFDIR || st.Nlink != 1 {
		return err
	}
	var in unix.Stat_t
	if err := unix.Fstat(dir, &in); err != nil {
		return err
	}
	if int(in.Uid) == os.Geteuid() && in.Mode&0o022 == 0 { // no other user can remove names there
		return nil
	}
	if err := awaitRemovals(dir); err != nil {
		return err
	}
	full, err := os.Readlink(Handle(fd))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // /proc is not mounted
	}
	above, failed := os.Readlink(Handle(dir))
	if full != path.Join(above, name) {
		st.Nlink = 2
	}
	return errors.Join(err, failed)
}

// awaitRemovals waits until all removals of names in progress in a directory have ended.
func awaitRemovals(dir int) error {
	fd, err := RetryOpen(func() (int, error) {
		return unix.Openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if errors.Is(err, unix.EACCES) { // this user may not list it, and so has no privileges that need protection
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return Retry(func() error {
		_, err := unix.ReadDirent(fd, make([]byte, 1024))
		return err
	})
}

// owe records a link that is about to be followed, with the parties that control it.
func (w *walker) owe(st *unix.Stat_t, link string) error {
	if !w.root.safe {
		return nil
	}
	by, err := w.controllers()
	if err != nil {
		return err
	}
	if w.root.unprivileged(st.Uid) {
		by = append(by, controller{kind: 'u', id: st.Uid, at: link})
	}
	if w.root.collect != nil {
		w.root.collect(by)
		return nil
	}
	if len(by) > 0 && w.root.steady {
		return w.root.unsteady(w.asked, link, by[0])
	}
	if len(by) > 0 {
		w.owed = append(w.owed, pendingLink{left: len(w.todo), link: link, by: by})
	}
	return nil
}

// settle checks the targets of the links whose names have all been walked.
func (w *walker) settle(fd int) error {
	var st unix.Stat_t
	for len(w.owed) > 0 && len(w.todo) <= w.owed[len(w.owed)-1].left {
		d := w.owed[len(w.owed)-1]
		w.owed = w.owed[:len(w.owed)-1]
		if err := unix.Fstat(fd, &st); err != nil {
			return err
		}
		if i := slices.IndexFunc(d.by, func(c controller) bool { return !c.controls(&st) }); i >= 0 {
			return &UnsafeError{Path: w.asked, Component: d.link, By: d.by[i].String(), Owner: int(st.Uid)}
		}
	}
	return nil
}

// lost checks the links that were followed when the walk ended at a name that does not exist. They lead into the
// present directory: a file made there would be made for the users who control the links.
func (w *walker) lost(err error) error {
	if !errors.Is(err, unix.ENOENT) || len(w.owed) == 0 {
		return err
	}
	w.todo = nil
	if unsafe := w.settle(w.here().fd); unsafe != nil {
		return unsafe
	}
	return err
}

// arrived checks the file that was opened at the end.
func (w *walker) arrived(fd int) error {
	if !w.root.safe {
		return nil
	}
	if err := w.settle(fd); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := StatNames(w.here().fd, w.last, fd, &st); err != nil || st.Mode&unix.S_IFMT == unix.S_IFDIR || st.Nlink < 2 {
		return err
	}
	by, err := w.controllers()
	if err != nil {
		return err
	}
	return ownName(w.asked, w.asked, &st, by)
}

// ownName returns an error for a file with several names that a user who controls its directory does not own.
func ownName(asked, component string, st *unix.Stat_t, by []controller) error {
	if st.Mode&unix.S_IFMT == unix.S_IFDIR || st.Nlink < 2 {
		return nil
	}
	if i := slices.IndexFunc(by, func(c controller) bool { return !c.controls(st) }); i >= 0 {
		return &UnsafeError{Path: asked, Component: component, By: by[i].String(), Owner: int(st.Uid)}
	}
	return nil
}
