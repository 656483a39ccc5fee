package walk

import (
	"errors"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// maxHops is the maximum number of links that are followed in one path, as in the kernel.
const maxHops = 40

// rest returns the path of the walk so far, with the remaining names.
func (w *walker) rest() string {
	p := strings.TrimRight(w.here().name, "/") + "/" + w.name
	for _, name := range slices.Backward(w.todo) {
		p += "/" + name
	}
	return p
}

// end checks the target of the path.
func (w *walker) end() error {
	fd, err := RetryOpen(func() (int, error) {
		return unix.Openat(w.here().fd, w.last, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	if errors.Is(err, unix.ENOENT) {
		return w.settle(w.here().fd)
	}
	if fd, err = w.sameKind(fd, err); err != nil {
		return err
	}
	defer unix.Close(fd)
	return w.arrived(fd)
}

// step is a directory on the way.
type step struct {
	fd   int
	name string // its path, for messages
}

// walker walks down a path. It keeps every directory on the way open: ".." returns to the directory that the walk came
// from, even if the present one was moved elsewhere since, so no rename leads the walk out of the root.
type walker struct {
	root  *Root
	asked string
	way   []step   // the first is the root, the last the present directory
	todo  []string // remaining names, the next one at the end
	name  string   // the present name
	last  string   // the name of the target in the last directory
	hops  int
	owed  []pendingLink // links that are not resolved to their end
}

func newWalker(r *Root, p string) *walker {
	w := &walker{root: r, asked: p, way: []step{{fd: int(r.dir.Fd()), name: "/"}}}
	w.push(p)
	return w
}

func (w *walker) close() { w.back(1) }

// back returns to an earlier directory: it closes all but the first steps.
func (w *walker) back(keep int) {
	for len(w.way) > keep {
		_ = unix.Close(w.here().fd)
		w.way = w.way[:len(w.way)-1]
	}
}

func (w *walker) here() step { return w.way[len(w.way)-1] }

// push puts the names of a path before the remaining ones. A slash at the end requires a directory, as "." does.
func (w *walker) push(p string) {
	if strings.HasSuffix(p, "/") {
		p += "."
	}
	names := strings.Split(p, "/")
	for i := len(names) - 1; i >= 0; i-- {
		if names[i] != "" {
			w.todo = append(w.todo, names[i])
		}
	}
}

// walk walks to the directory of the last name. If follow is set, it follows a link there.
func (w *walker) walk(follow bool) error {
	for {
		name := w.todo[len(w.todo)-1]
		w.todo = w.todo[:len(w.todo)-1]
		w.name = name
		end := len(w.todo) == 0
		if name == "." || name == ".." {
			if err := w.dots(name); err != nil || end {
				w.last = "."
				return err
			}
			continue
		}
		if end {
			linked, err := w.atEnd(name, follow)
			if err != nil || !linked {
				w.last = name
				return err
			}
			continue
		}
		if err := w.enter(name); err != nil {
			return err
		}
	}
}

// dots handles "." and "..", which stays in the root at the top. The kernel refuses both in a
// directory that the process may not search.
func (w *walker) dots(name string) error {
	fd, err := RetryOpen(func() (int, error) {
		return unix.Openat(w.here().fd, ".", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return err
	}
	_ = unix.Close(fd)
	if name == ".." {
		w.back(max(1, len(w.way)-1))
	}
	if len(w.todo) == 0 {
		return nil // the caller checks the opened file at the end
	}
	return w.settle(w.here().fd)
}

// atEnd checks the last name, and follows a link there if follow is set.
func (w *walker) atEnd(name string, follow bool) (linked bool, err error) {
	if !follow {
		return false, nil
	}
	var st unix.Stat_t
	err = Retry(func() error { return unix.Fstatat(w.here().fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	if errors.Is(err, unix.ENOENT) {
		return false, nil // the caller opens or makes it, and gets the error
	}
	if err != nil || st.Mode&unix.S_IFMT != unix.S_IFLNK {
		return false, err
	}
	return true, w.follow(name)
}

// enter enters a directory, or follows a link.
func (w *walker) enter(name string) error {
	fd, err := RetryOpen(func() (int, error) {
		return unix.Openat(w.here().fd, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return w.follow(name)
	}
	if err != nil {
		return err
	}
	w.way = append(w.way, step{fd: fd, name: path.Join(w.here().name, name)})
	return w.settle(fd)
}

// follow puts the target of a link before the remaining names. Anything but a link is ENOTDIR here.
func (w *walker) follow(name string) error {
	fd, err := RetryOpen(func() (int, error) {
		return unix.Openat(w.here().fd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
	case unix.S_IFDIR:
		return errRaced
	default:
		return unix.ENOTDIR
	}
	if w.hops++; w.hops > maxHops || w.root.noLinks {
		return unix.ELOOP
	}
	target, err := Readlinkat(fd, "")
	if err != nil {
		return err
	}
	return w.along(fd, &st, name, target)
}

func (w *walker) along(link int, st *unix.Stat_t, name, target string) error {
	if magic(link, target) {
		return unix.ELOOP
	}
	if err := w.owe(st, path.Join(w.here().name, name)); err != nil {
		return err
	}
	if strings.HasPrefix(target, "/") {
		w.back(1)
	}
	w.push(target)
	return nil
}

// magic reports whether a link of /proc leads elsewhere than its text says: to an open file, or to another root.
func magic(link int, target string) bool {
	var at unix.Statfs_t
	if err := unix.Fstatfs(link, &at); err != nil || at.Type != unix.PROC_SUPER_MAGIC {
		return false
	}
	return strings.HasPrefix(target, "/") || strings.Contains(target, ":[")
}

// sameKind returns errRaced if a name has become a link since the walk checked it.
func (w *walker) sameKind(fd int, err error) (int, error) {
	var st unix.Stat_t
	switch {
	case err == nil:
		if err = unix.Fstat(fd, &st); err == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK {
			err = errRaced
		}
		if err != nil {
			_ = unix.Close(fd)
		}
	case errors.Is(err, unix.ELOOP):
		err = errRaced
	case errors.Is(err, unix.ENOTDIR):
		if unix.Fstatat(w.here().fd, w.last, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK {
			err = errRaced
		}
	}
	return fd, err
}
