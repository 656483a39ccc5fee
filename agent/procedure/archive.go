package procedure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// NoRoom says that an archive would not fit, before anything of it was written.
type NoRoom struct {
	Dir        string
	Need, Free int64 // bytes
}

func (n *NoRoom) Error() string {
	return fmt.Sprintf("the archive would take %s, and %s has %s free", diag.Size(n.Need), n.Dir, diag.Size(n.Free))
}

// Hint says what to do.
func (n *NoRoom) Hint() string {
	return "make room, or lower keep.archives and keep.failed in agent.yaml; nothing on the host was changed"
}

// entry is what a file costs beside its content, roughly.
const entry = 4 << 10

// maxDepth bounds how deep a tree is archived: each level takes descriptors.
const maxDepth = 256

// Tree is a project's tree that is to be archived. A user may change it meanwhile, so it is read by descriptors: no link is
// followed, nothing is waited for, and what cannot be read safely, or is gone when its turn comes, is left out.
type Tree struct {
	Root *walk.Root // a safe root
	Path string     // of the tree, in the root
	Note func(format string, args ...any)
}

// Size is what the tree takes on disk: a file with holes counts by its blocks.
func (t Tree) Size(ctx context.Context) (int64, error) {
	var sum int64
	dir, err := t.Root.OpenDir(t.Path)
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	err = each(ctx, dir, 0, func(_ *walk.Dir, _ string, st *unix.Stat_t) error {
		sum += entry
		if st.Mode&unix.S_IFMT == unix.S_IFREG {
			sum += min(st.Size, st.Blocks*512)
		}
		return nil
	})
	return sum, err
}

// each visits all below a directory. What vanishes meanwhile is passed over.
func each(ctx context.Context, dir *walk.Dir, depth int, visit func(dir *walk.Dir, name string, st *unix.Stat_t) error) error {
	names, err := dir.ReadDir()
	if err != nil || depth == maxDepth {
		return err
	}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		st, err := dir.Lstat(name)
		if err == nil {
			err = visit(dir, name, &st)
		}
		if err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
			var sub *walk.Dir
			if sub, err = dir.OpenDir(name); err == nil {
				err = errors.Join(each(ctx, sub, depth+1, visit), sub.Close())
			}
		}
		if err != nil && !vanished(err) {
			return err
		}
	}
	return nil
}

// vanished reports whether an error is that of a name that is not any more what it was.
func vanished(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO)
}

// Fits reports, as a *NoRoom, that the tree does not fit beside a directory. Some is left free, since
// a full disk stops more than an archive.
func (t Tree) Fits(ctx context.Context, dir string) error {
	need, err := t.Size(ctx)
	if err != nil {
		return fmt.Errorf("measuring %s: %w", t.Path, err)
	}
	var disk unix.Statfs_t
	if err := unix.Statfs(dir, &disk); err != nil {
		return fmt.Errorf("measuring %s: %w", dir, err)
	}
	free := int64(disk.Bavail) * disk.Bsize
	if need+need/20 > free {
		return &NoRoom{Dir: dir, Need: need, Free: free}
	}
	return nil
}

// Archive copies the tree to a directory of root's: everything in it with modes, owners where that is allowed, and times, but
// without setuid and setgid bits. Nothing is linked to the original. The copy gets its name when it is complete.
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
			err = errors.Join(err, os.RemoveAll(temp))
		}
	}()
	if err := t.into(ctx, temp); err != nil {
		return fmt.Errorf("archiving %s: %w", t.Path, err)
	}
	return durable.Install(temp, to)
}

func unwritable(to string, err error) error {
	return diag.WithHint(fmt.Errorf("archiving to %s: %w", to, err), "the archives directory must be writable for root; see who owns it and how it is mounted")
}

func (t Tree) into(ctx context.Context, temp string) error {
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
	c := copier{ctx: ctx}
	err = c.directory(from, to, 0)
	if c.left > 0 && t.Note != nil {
		t.Note("%d names of %s were not archived, which changed meanwhile or are not safe to read; the first: %v", c.left, t.Path, c.first)
	}
	return err
}

// copier copies one tree.
type copier struct {
	ctx   context.Context
	left  int // names that were left out
	first error
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
			return &fs.PathError{Op: "archive", Path: name, Err: fs.ErrNotExist} // it is no link any more
		}
		if err != nil {
			return err
		}
		return errors.Join(to.Symlink(target, name), own(to, name, &st))
	case unix.S_IFREG:
		return c.file(from, to, name)
	}
	return nil // sockets, pipes and devices are no content
}

// file copies a file. What it is and whose counts when it is open.
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
		return &fs.PathError{Op: "archive", Path: name, Err: fs.ErrNotExist} // it is no file any more
	}
	out, err := to.New(name)
	if err != nil {
		return err
	}
	err = content(c.ctx, in, out, st.Size)
	return errors.Join(err, out.Close(), describe(to, name, &st))
}

// content copies what a file had when it was opened, and no holes.
func content(ctx context.Context, in, out *os.File, size int64) error {
	for at := int64(0); at < size; {
		if err := ctx.Err(); err != nil {
			return err
		}
		start, end := extent(in, at, size)
		if start >= size {
			break
		}
		end = min(end, start+maxPiece)
		n, err := io.Copy(io.NewOffsetWriter(out, start), io.NewSectionReader(in, start, end-start))
		if err != nil {
			return err
		}
		if n == 0 {
			break // it was cut meanwhile
		}
		at = start + n
	}
	return out.Truncate(size)
}

// maxPiece is how much is copied before the context is asked.
const maxPiece = 64 << 20

// extent is the next part of a file that has content. A filesystem that cannot tell has content everywhere.
func extent(f *os.File, at, size int64) (start, end int64) {
	start, err := unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
	if errors.Is(err, unix.ENXIO) {
		return size, size
	}
	if err != nil {
		return at, size
	}
	if end, err = unix.Seek(int(f.Fd()), start, unix.SEEK_HOLE); err != nil {
		end = size
	}
	return start, min(end, size)
}

// describe gives a name of the archive the owner, mode and time of the original.
func describe(dir *walk.Dir, name string, st *unix.Stat_t) error {
	mode := fs.FileMode(st.Mode & 0o777)
	return errors.Join(own(dir, name, st), dir.Chmod(name, mode), dir.Touch(name, st.Atim, st.Mtim))
}

// own gives a name its owner; only root may, and for others it stays theirs.
func own(dir *walk.Dir, name string, st *unix.Stat_t) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return dir.Chown(name, int(st.Uid), int(st.Gid))
}
