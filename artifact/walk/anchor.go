package walk

import (
	"errors"
	"path"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// anchor is a directory whose path has links on the way. They are walked once, by the rule of safe roots, and what is
// below the directory is opened from there.
type anchor struct {
	path  string
	once  sync.Once
	below *Root // nil where the path is walked whole each time
	at    unix.Stat_t
}

// Anchored is a root like r that walks the links on the way to these directories once, when something below them is
// first opened. After that it asks the kernel whether a directory's path still leads there, which costs one call in
// place of some thirty: where the path leads elsewhere by now, or a link lies below the directory, or a file there has
// several names, the whole path is walked as r walks it. So it opens what r opens, and refuses what r refuses. It
// shares the directory of r, so that it must not be used after r was closed. Without openat2(2) it walks every path
// whole.
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

// unanchored is a copy of a root that walks every path whole.
func (r *Root) unanchored() *Root {
	other := *r
	other.anchors = nil
	return &other
}

// openAnchored opens a path that lies below an anchor. Done is false where the whole path has to be walked.
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

// leavesDir reports whether a path has "..", which may lead out of the directory that it starts at.
func leavesDir(rest string) bool { return strings.Contains(rest+"/", "/../") }

// walk opens the anchor's directory. A path without a link needs no anchor: the kernel walks it at once. The directory
// is closed when nothing uses the root any more.
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
		return // walking the path whole says what is wrong with it
	}
	if unix.Fstat(int(below.dir.Fd()), &a.at) != nil {
		_ = below.Close() // only a place
		return
	}
	a.below = below
}

// leadsThere reports whether the anchor's path still leads to its directory, with the owner and mode that were judged.
// Nothing else is taken from this look, so it does not matter who controls the links on the way.
func (a *anchor) leadsThere(r *Root) bool {
	var st unix.Stat_t
	err := r.stat(a.path, &st)
	return err == nil && st.Dev == a.at.Dev && st.Ino == a.at.Ino && st.Uid == a.at.Uid && st.Gid == a.at.Gid && st.Mode == a.at.Mode
}

// stat describes the directory that a path leads to. It follows links whichever user controls them.
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
