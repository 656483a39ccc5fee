package walk

import (
	"errors"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// Visit is what a walk of a tree does. It is called with an open directory and a name in it, and must not close the directory.
type Visit struct {
	// Enter is called for each name, in the order of names, and for a directory before what is in it. The walk goes into a
	// directory if it returns true.
	Enter func(at *Dir, name string, st *unix.Stat_t) (into bool, err error)
	// Leave is called for a directory after what is in it; nil for nothing.
	Leave func(at *Dir, name string) error
}

// mostOpen is how many directories above the one where a walk is it keeps open.
const mostOpen = 64

// level is a directory on the way down.
type level struct {
	dir   *Dir // nil where it is closed, and found again by ".."
	id    fileID
	path  string
	name  string   // in the directory above
	names []string // still to go
}

// tree is a walk of all that is below a directory. It takes time in proportion to what is there, whatever the depth, and no
// path: a user makes trees of 10,000 levels, whose paths are longer than any system call takes.
type tree struct {
	Visit
	way []*level
}

// Walk visits all that is below a directory. No link is followed. What is gone when it comes there is left out.
func (d *Dir) Walk(v Visit) error {
	t := &tree{Visit: v}
	defer t.close()
	top, err := d.OpenDir(".")
	if err != nil {
		return err
	}
	top.path = d.path
	if err := t.down(top, ""); err != nil {
		return err
	}
	for len(t.way) > 0 {
		if err := t.next(); err != nil {
			return err
		}
	}
	return nil
}

func (t *tree) close() {
	for _, l := range t.way {
		if l.dir != nil {
			_ = l.dir.Close() // only a place
		}
	}
}

// down goes into an open directory, which the walk closes.
func (t *tree) down(dir *Dir, name string) error {
	l := &level{dir: dir, path: dir.path, name: name}
	t.way = append(t.way, l)
	var err error
	if l.id, err = idOf(dir.FD()); err != nil {
		return pathError("stat", dir.path, err)
	}
	if far := len(t.way) - mostOpen - 1; far > 0 && t.way[far].dir != nil {
		err = t.way[far].dir.Close()
		t.way[far].dir = nil
	}
	if err == nil {
		l.names, err = dir.ReadDir()
	}
	return err
}

func (t *tree) next() error {
	l := t.way[len(t.way)-1]
	if len(l.names) == 0 {
		return t.up()
	}
	name := l.names[0]
	l.names = l.names[1:]
	var st unix.Stat_t
	err := Retry(func() error { return unix.Fstatat(l.dir.FD(), name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return pathError("lstat", below(l.path, name), err)
	}
	into, err := t.Enter(l.dir, name, &st)
	if err != nil || !into {
		return err
	}
	sub, err := l.dir.enter(name)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	return t.down(sub, name)
}

// up leaves a directory for the one above, which the kernel finds if it is closed. A directory that was moved meanwhile leads
// elsewhere, and the walk fails.
func (t *tree) up() error {
	l := t.way[len(t.way)-1]
	t.way = t.way[:len(t.way)-1]
	defer l.dir.Close()
	if len(t.way) == 0 {
		return nil
	}
	above := t.way[len(t.way)-1]
	if above.dir == nil {
		fd, err := RetryOpen(func() (int, error) {
			return unix.Openat(l.dir.FD(), "..", unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		})
		if err != nil {
			return pathError("open", above.path, err)
		}
		above.dir = newDir(l.dir.root, fd, above.path)
		if id, err := idOf(fd); err != nil || id != above.id {
			return pathError("open", l.path, errors.Join(err, errMoved))
		}
	}
	if t.Leave == nil {
		return nil
	}
	return t.Leave(above.dir, l.name)
}

var errMoved = errors.New("it was moved while it was walked through")

// enter is OpenDir for a walk, in which a path may be longer than is worth to be kept.
func (d *Dir) enter(name string) (*Dir, error) {
	fd, err := RetryOpen(func() (int, error) {
		return unix.Openat(d.FD(), name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, pathError("open", below(d.path, name), err)
	}
	return newDir(d.root, fd, below(d.path, name)), nil
}

// below is a name in a directory, for messages. A path that no system call would take ends in dots: to write out those of a
// deep tree would cost the square of its depth.
func below(dir, name string) string {
	switch {
	case len(dir) <= unix.PathMax:
		return path.Join(dir, name)
	case strings.HasSuffix(dir, "/..."):
		return dir
	}
	return dir + "/..."
}
