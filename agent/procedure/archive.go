package procedure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// NoSpace is the error of an archive that does not fit on the disk.
type NoSpace struct {
	Dir        string
	Need, Free int64    // bytes
	Nodes      bool     // Need and Free count files: the filesystem has too few inodes
	Grown      bool     // the tree became larger than Free while it was archived
	Largest    []string // the largest parts of the tree, with sizes
}

func (n *NoSpace) Error() string {
	need, free := diag.Size(n.Need), diag.Size(n.Free)
	if n.Nodes {
		need, free = diag.Count(int(n.Need), "file"), fmt.Sprintf("space for %d", n.Free)
	}
	if n.Grown {
		return fmt.Sprintf("the tree grew from %s beyond %s while it was archived", need, free)
	}
	text := fmt.Sprintf("the archive would take %s, and %s has %s free", need, n.Dir, free)
	if len(n.Largest) > 0 {
		text += "; largest: " + strings.Join(n.Largest, ", ")
	}
	return text
}

// Hint returns what a person can do about it.
func (n *NoSpace) Hint() string {
	return diag.Disk.Coded("make room: remove what is largest, or lower keep.archives and keep.failed in agent.yaml")
}

// entry is roughly the space that a file takes in addition to its content.
const entry = 4 << 10

// maxDepth bounds how deep a tree is archived: each level takes descriptors.
const maxDepth = 256

// Tree is a project's tree that is to be archived. A user may change it meanwhile, so it is read by descriptors: no
// link is followed, no read blocks, and files that cannot be read safely, or have been removed meanwhile, are left out.
type Tree struct {
	Root *walk.Root // a safe root
	Path string     // of the tree, in the root
	Note func(format string, args ...any)
}

// vanished reports whether an error is that of a file that was removed or replaced during the copy.
func vanished(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) ||
		errors.Is(err, unix.ENXIO)
}

// Archive copies the tree to a directory of root's, with modes, times and, if permitted, owners, but without setuid and
// setgid bits. The copy has no links to the original; hard links within the tree stay hard links in the copy. The copy
// gets its name when it is complete. The error is a *NoSpace if the tree has grown beyond what Measure found.
func (t Tree) Archive(ctx context.Context, to string) (err error) {
	if err := durable.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return unwritable(to, err)
	}
	temp, err := durable.TempDir(filepath.Dir(to))
	if err != nil {
		return unwritable(to, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, durable.RemoveTemp(ctx, temp))
			_ = os.Remove(filepath.Dir(to)) // if it is empty
		}
	}()
	if err := t.into(ctx, temp, filepath.Dir(to)); err != nil {
		return fmt.Errorf("archiving %s: %w", t.Path, err)
	}
	return durable.Install(temp, to)
}

func unwritable(to string, err error) error {
	return diag.Rights.Hint(fmt.Errorf("archiving to %s: %w", to, err),
		"the archives directory must be writable for root; see who owns it and how it is mounted")
}

func (t Tree) into(ctx context.Context, temp, archives string) (err error) {
	takes, err := t.Measure(ctx)
	if err != nil {
		return err
	}
	if err := takes.Fits(archives); err != nil {
		return err
	}
	from, err := t.Root.OpenDir(t.Path)
	if err != nil {
		return err
	}
	defer from.Close()
	here, err := walk.Open(walk.Options{Dir: temp})
	if err != nil {
		return err
	}
	defer here.Close()
	to, err := here.OpenDir("/")
	if err != nil {
		return err
	}
	defer to.Close()
	links, err := durable.TempDir(archives)
	if err != nil {
		return unwritable(archives, err)
	}
	defer func() { err = errors.Join(err, durable.RemoveTemp(ctx, links)) }()
	names, err := walk.Open(walk.Options{Dir: links})
	if err != nil {
		return err
	}
	defer names.Close()
	several, err := names.OpenDir("/")
	if err != nil {
		return err
	}
	defer several.Close()
	c := copier{ctx: ctx, several: several, copied: map[inode]string{}, space: takes.Bytes + takes.Bytes/20 + grows}
	if err = c.directory(from, to, 0); errors.Is(err, errGrown) {
		err = &NoSpace{Dir: archives, Need: takes.Bytes, Free: takes.Bytes + takes.Bytes/20 + grows, Grown: true}
	}
	if c.left > 0 && t.Note != nil {
		t.Note("%s of %s left out of the archive, for changing meanwhile or being unsafe to read; the first: %v",
			diag.Count(c.left, "name"), t.Path, c.first)
	}
	return err
}

// grows is how many bytes a tree may grow while it is archived, in addition to a twentieth of its size.
const grows = 64 << 20

// errGrown ends a copy that takes more space than was measured.
var errGrown = errors.New("the tree grows while it is archived")

// copier copies one tree.
type copier struct {
	ctx     context.Context
	several *walk.Dir        // a directory with a link to each copy of a file with several names
	copied  map[inode]string // the names of these links
	space   int64            // bytes that may still be written
	left    int              // names that were left out
	first   error
}

// inode identifies a file. Its size and modification time distinguish it from a later file with the inode number of one
// that was removed meanwhile.
type inode struct {
	dev, ino uint64
	size     int64
	changed  unix.Timespec // of the content
}

func inodeOf(st *unix.Stat_t) inode {
	dev := uint64(st.Dev) //nolint:unconvert // its type depends on the platform
	return inode{dev: dev, ino: st.Ino, size: st.Size, changed: st.Mtim}
}

// linked links a name to the copy of the same file under another name, and reports whether it did. A file that cannot
// be linked, such as beyond a filesystem's limit of names, is copied again.
func (c *copier) linked(to *walk.Dir, name string, st *unix.Stat_t) bool {
	if st.Nlink < 2 {
		return false
	}
	first, ok := c.copied[inodeOf(st)]
	return ok && c.several.Link(first, to, name) == nil
}

// remember keeps a copy of a file with several names for its other names.
func (c *copier) remember(to *walk.Dir, name string, st *unix.Stat_t) {
	if st.Nlink < 2 {
		return
	}
	first := strconv.Itoa(len(c.copied))
	if to.Link(name, c.several, first) == nil {
		c.copied[inodeOf(st)] = first
	}
}

// leave notes a name that is left out. Errors that a user cannot cause end the copy.
func (c *copier) leave(err error) error {
	var unsafe *walk.UnsafeError
	if err == nil || !vanished(err) && !errors.As(err, &unsafe) {
		return err
	}
	if c.left++; c.first == nil {
		c.first = err
	}
	return nil
}

func (c *copier) directory(from, to *walk.Dir, depth int) error {
	st, err := from.Lstat(".")
	if err != nil {
		return err
	}
	names, err := from.ReadDir()
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		if err := c.leave(c.entry(from, to, name, depth)); err != nil {
			return err
		}
	}
	return describe(to, ".", &st)
}

func (c *copier) entry(from, to *walk.Dir, name string, depth int) error {
	st, err := from.Lstat(name)
	if err != nil {
		return err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		if depth == maxDepth {
			return &fs.PathError{Op: "archive", Path: name, Err: unix.ELOOP}
		}
		sub, err := from.OpenDir(name)
		if err != nil {
			return err
		}
		defer sub.Close()
		made, err := to.Mkdir(name, walk.New{Mode: 0o700, UID: -1, GID: -1})
		if err != nil {
			return err
		}
		return errors.Join(c.directory(sub, made, depth+1), made.Close())
	case unix.S_IFLNK:
		target, err := from.Readlink(name)
		if errors.Is(err, unix.EINVAL) {
			return &fs.PathError{Op: "archive", Path: name, Err: fs.ErrNotExist} // it is not a link any more
		}
		if err != nil {
			return err
		}
		return errors.Join(to.Symlink(target, name), own(to, name, &st))
	case unix.S_IFREG:
		return c.file(from, to, name)
	}
	return nil // sockets, pipes and devices are not content
}

// file copies a file. Its kind and owner are checked after it was opened.
func (c *copier) file(from, to *walk.Dir, name string) error {
	in, err := from.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(in.Fd()), &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return &fs.PathError{Op: "archive", Path: name, Err: fs.ErrNotExist} // it is not a file any more
	}
	if c.space -= entry; c.space < 0 {
		return errGrown
	}
	if c.linked(to, name, &st) {
		return nil
	}
	out, err := to.New(name)
	if err != nil {
		return err
	}
	err = errors.Join(c.content(in, out, st.Size), out.Close())
	if err == nil {
		c.remember(to, name, &st)
	}
	return errors.Join(err, describe(to, name, &st))
}

// content copies as many bytes of a file as it had when it was opened, and skips holes.
func (c *copier) content(in, out *os.File, size int64) error {
	for at := int64(0); at < size; {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		start, end := walk.Extent(in, at, size)
		if start >= size {
			break
		}
		end = min(end, start+maxPiece)
		if c.space -= end - start; c.space < 0 {
			return errGrown
		}
		n, err := io.Copy(io.NewOffsetWriter(out, start), io.NewSectionReader(in, start, end-start))
		if err != nil {
			return err
		}
		if n == 0 {
			break // it was truncated meanwhile
		}
		at = start + n
	}
	return out.Truncate(size)
}

// maxPiece is how many bytes are copied between checks of the context.
const maxPiece = 64 << 20

// describe sets the owner, mode and times of a name in the archive to those of the original.
func describe(dir *walk.Dir, name string, st *unix.Stat_t) error {
	mode := fs.FileMode(st.Mode & 0o777)
	return errors.Join(own(dir, name, st), dir.Chmod(name, mode), dir.Touch(name, st.Atim, st.Mtim))
}

// own sets the owner of a name. It does nothing if this process is not root.
func own(dir *walk.Dir, name string, st *unix.Stat_t) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return dir.Chown(name, int(st.Uid), int(st.Gid))
}
