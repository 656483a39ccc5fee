package walk

import (
	"errors"
	"path"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// anchor is a directory whose path contains links. The links are walked once, by the rules of safe roots, and paths
// below the directory are opened from there.
type anchor struct {
	path  string
	once  sync.Once
	below *Root // nil if the whole path is walked each time
	at    unix.Stat_t
}

// Anchored returns a root like r that walks the links on the way to these directories once, when a path below them is
// first opened. After that it only checks that a directory's path still leads there, which takes one system call
// instead of some thirty. If the path leads elsewhere now, or a link is below the directory, or a file there has
// several names, the whole path is walked as by r. So the new root opens and refuses the same paths as r. It shares the
// directory of r, so it must not be used after r is closed. Without openat2(2) it walks every path as a whole.
func (r *Root) Anchored(dirs []string) *Root {
	other := *r
	other.anchors = nil
	if !r.kernel {
		return &other
	}
	for _, dir := range dirs {
		if wellFormed(dir) == nil && path.Clean(dir) == dir && dir != "/" {
			other.anchors = append(other.anchors, &anchor{path: dir})
		}
	}
	return &other
}

// unanchored returns a copy of a root that walks every path as a whole.
func (r *Root) unanchored() *Root {
	other := *r
	other.anchors = nil
	return &other
}

// openAnchored opens a path below an anchor. done is false if the whole path must be walked.
func (r *Root) openAnchored(p string, flags int) (fd int, done bool, err error) {
	for _, a := range r.anchors {
		rest, below := strings.CutPrefix(p, a.path)
		if !below || rest != "" && rest[0] != '/' || leavesDir(rest) {
			continue
		}
		a.once.Do(func() { a.walk(r) })
		if a.below == nil || !a.leadsThere(r) {
			return -1, false, nil
		}
		fd, several, err := a.below.openPlain("/"+rest, flags)
		if err == nil && several {
			_ = unix.Close(fd)
			return -1, false, nil
		}
		return fd, err == nil || errors.Is(err, unix.ENOENT), err
	}
	return -1, false, nil
}

// leavesDir reports whether a path contains "..", which may lead out of the directory where the path starts.
func leavesDir(rest string) bool { return strings.Contains(rest+"/", "/../") }

// walk opens the anchor's directory. A path without links needs no anchor, since the kernel walks it in one call. The
// directory is closed when the root is no longer in use.
func (a *anchor) walk(r *Root) {
	fd, err := r.openat2(a.path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, unix.RESOLVE_NO_SYMLINKS)
	if err == nil {
		_ = unix.Close(fd)
	}
	if !errors.Is(err, unix.ELOOP) {
		return
	}
	below, err := r.unanchored().Beneath(a.path)
	if err != nil {
		return // walking the whole path will return the error
	}
	if unix.Fstat(int(below.dir.Fd()), &a.at) != nil {
		_ = below.Close() // opened with O_PATH
		return
	}
	a.below = below
}

// leadsThere reports whether the anchor's path still leads to its directory, with the same owner and mode as when they
// were checked. The path is used for nothing else, so it does not matter who controls its links.
func (a *anchor) leadsThere(r *Root) bool {
	var st unix.Stat_t
	err := r.stat(a.path, &st)
	return err == nil && st.Dev == a.at.Dev && st.Ino == a.at.Ino && st.Uid == a.at.Uid && st.Gid == a.at.Gid &&
		st.Mode == a.at.Mode
}

// stat describes the directory that a path leads to. It follows all links.
func (r *Root) stat(p string, st *unix.Stat_t) error {
	if r.machine {
		return Retry(func() error { return unix.Stat(p, st) })
	}
	fd, err := r.openat2(p, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Fstat(fd, st)
}
