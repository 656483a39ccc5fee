package walk

import (
	"errors"
	"io"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Visit has the callbacks of a walk of a tree. They get an open directory, which they must not close, and a name in it.
type Visit struct {
	// Enter is called for each name, in order, and for a directory before its content. The walk enters a directory if
	// Enter returns true.
	Enter func(at *Dir, name string, st *unix.Stat_t) (into bool, err error)
	// Leave is called for a directory after its content; it may be nil.
	Leave func(at *Dir, name string) error
}

// mostLevels is the maximum depth of a walk. A user can continue making directories in the lowest one while it is
// walked.
const mostLevels = 1 << 14

// mostNames is the maximum number of names that are read of a directory. A user can continue making, or renaming, names
// in the meantime, and some filesystems list the new ones too.
const mostNames = 1 << 22

// ErrEndless is the error for a tree with more levels or names than the agent reads.
var ErrEndless = errors.New("it has more levels or names than the agent reads; see who makes them")

// ReadNames returns the names of an open directory, sorted. next is its Readdirnames.
func ReadNames(next func(n int) ([]string, error)) ([]string, error) {
	var all []string
	for {
		names, err := next(1 << 12)
		all = append(all, names...)
		switch {
		case errors.Is(err, io.EOF) || err == nil && len(names) == 0:
			slices.Sort(all)
			return all, nil
		case err != nil:
			return all, err
		case len(all) > mostNames:
			return nil, ErrEndless
		}
	}
}

// mostOpen is the maximum number of directories above the present one that are kept open.
const mostOpen = 64

// level is a directory between the top and the present one.
type level struct {
	dir   *Dir // nil if it is closed, to be opened again as ".."
	id    fileID
	path  string
	name  string   // its name in the directory above
	names []string // remaining names
}

// tree is a walk of everything below a directory. Its time is proportional to the content, at any depth, and it uses no
// paths: a user can make trees of 10,000 levels, whose paths are too long for any system call.
type tree struct {
	Visit
	way []*level
}

// Walk visits everything below a directory. It follows no links, and skips names that disappear in the meantime.
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
			_ = l.dir.Close() // opened with O_PATH
		}
	}
}

// down enters an open directory, which the walk closes.
func (t *tree) down(dir *Dir, name string) error {
	l := &level{dir: dir, path: dir.path, name: name}
	t.way = append(t.way, l)
	if len(t.way) > mostLevels {
		return pathError("readdir", dir.path, ErrEndless)
	}
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

// up returns to the directory above, opening it as ".." if it is closed. The walk fails if the directory was moved
// elsewhere in the meantime.
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

var errMoved = errors.New("it was moved during the walk")

// enter is like OpenDir for a walk, which shortens long paths.
func (d *Dir) enter(name string) (*Dir, error) {
	fd, err := RetryOpen(func() (int, error) {
		return unix.Openat(d.FD(), name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, pathError("open", below(d.path, name), err)
	}
	return newDir(d.root, fd, below(d.path, name)), nil
}

// below returns the path of a name in a directory, for messages. Paths that are too long for system calls end in dots,
// since writing them all out would take time quadratic in the depth.
func below(dir, name string) string {
	switch {
	case len(dir) <= unix.PathMax:
		return path.Join(dir, name)
	case strings.HasSuffix(dir, "/..."):
		return dir
	}
	return dir + "/..."
}
