// Package seen reads a tree that other users may be changing. What is read of a file is what was there when the tree
// was walked: files are opened below the descriptor of the tree, without following a link, and a file that is no
// longer the same one is an error.
package seen

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// ErrChanged is the error for a tree that is changed between two looks at it. Errors that it matches have the path.
var ErrChanged = errors.New("the tree was changed")

type changedError struct{ error }

func (c changedError) Unwrap() error { return c.error }

func (c changedError) Is(target error) bool { return target == ErrChanged }

func changed(name string) error {
	return changedError{diag.Tree.Hint(fmt.Errorf("%s changed while the tree was packed", diag.OneLine(name)),
		"build from a copy that only you can change")}
}

// Tree is an open directory. It is safe for concurrent use.
type Tree struct {
	name string
	root *walk.Root
}

// Open opens a tree, which is a directory and not a link. Links on the way to it are followed. The caller must close
// it.
func Open(dir string) (*Tree, error) {
	file, err := os.OpenFile(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	all, err := walk.Open(walk.Options{Dir: walk.Handle(int(file.Fd()))})
	if err != nil {
		return nil, err
	}
	root, err := all.Beneath("/")
	if err = errors.Join(err, all.Close()); err != nil {
		return nil, err
	}
	return &Tree{name: dir, root: root}, nil
}

// Close closes the tree.
func (t *Tree) Close() error { return t.root.Close() }

// Entry is a file, directory, or link in a tree, as it was when the tree was walked.
type Entry struct {
	Name string      // slash-separated, relative to the tree; "." for the tree itself
	Mode fs.FileMode // its type and permissions
	Size int64
	Link string // target of a symbolic link
	at   state
}

// state is what shows that a file is the same and that it was not written to.
type state struct {
	dev, ino         uint64
	mode             uint32
	size             int64
	written, changed unix.Timespec
}

func stateOf(st *unix.Stat_t) state {
	return state{dev: uint64(st.Dev), ino: st.Ino, mode: st.Mode, size: st.Size, //nolint:unconvert // differs elsewhere
		written: st.Mtim, changed: st.Ctim}
}

func entryOf(name string, st *unix.Stat_t) Entry {
	types := map[uint32]fs.FileMode{unix.S_IFREG: 0, unix.S_IFDIR: fs.ModeDir, unix.S_IFLNK: fs.ModeSymlink,
		unix.S_IFIFO: fs.ModeNamedPipe, unix.S_IFSOCK: fs.ModeSocket}
	kind, known := types[st.Mode&unix.S_IFMT]
	if !known {
		kind = fs.ModeDevice
	}
	return Entry{Name: name, Mode: kind | fs.FileMode(st.Mode&0o777), Size: st.Size, at: stateOf(st)}
}

// Walk calls visit for the tree, and for everything in it in the order of fs.WalkDir. If visit returns fs.SkipDir for a
// directory, its content is left out.
func (t *Tree) Walk(visit func(Entry) error) error {
	d, err := t.root.OpenDir("/")
	if err != nil {
		return t.pathError(".", err)
	}
	var st unix.Stat_t
	err = errors.Join(unix.Fstat(d.FD(), &st), d.Close())
	if err == nil {
		err = t.enter(entryOf(".", &st), visit)
	}
	return err
}

// enter visits a directory and its content.
func (t *Tree) enter(dir Entry, visit func(Entry) error) error {
	if err := visit(dir); err != nil {
		if errors.Is(err, fs.SkipDir) {
			return nil
		}
		return err
	}
	entries, err := t.list(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Mode.IsDir() {
			err = t.enter(e, visit)
		} else {
			err = visit(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// list returns what is in a directory.
func (t *Tree) list(dir Entry) ([]Entry, error) {
	d, err := t.root.OpenDir("/" + dir.Name)
	if err != nil {
		return nil, t.pathError(dir.Name, err)
	}
	defer d.Close()
	var is unix.Stat_t
	if err := unix.Fstat(d.FD(), &is); err != nil {
		return nil, t.pathError(dir.Name, err)
	}
	if uint64(is.Dev) != dir.at.dev || is.Ino != dir.at.ino { //nolint:unconvert // it has other types elsewhere
		return nil, changed(dir.Name)
	}
	names, err := d.ReadDir()
	if err != nil {
		return nil, t.pathError(dir.Name, err)
	}
	entries := make([]Entry, 0, len(names))
	for _, name := range names {
		full := path.Join(dir.Name, name)
		st, err := d.Lstat(name)
		if errors.Is(err, unix.ENOENT) {
			continue // it was removed before it was looked at
		}
		e := entryOf(full, &st)
		if err == nil && e.Mode&fs.ModeSymlink != 0 {
			e.Link, err = d.Readlink(name)
		}
		if err != nil {
			return nil, t.pathError(full, err)
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// pathError replaces the path of an error, which is relative to the tree. A file that is missing, or of another type
// than before, was changed.
func (t *Tree) pathError(name string, err error) error {
	for _, other := range []error{unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.EINVAL, unix.ENXIO} {
		if errors.Is(err, other) {
			return changed(name)
		}
	}
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return &fs.PathError{Op: "open", Path: filepath.Join(t.name, filepath.FromSlash(name)), Err: err}
}

// File is an open file of a tree. It has few methods, since one *os.File for each of many small files would cost more
// than reading them.
type File struct {
	tree  *Tree
	entry Entry
	fd    int
}

// Open opens a regular file, which must be the same as when the tree was walked. The caller must close it.
func (t *Tree) Open(e Entry) (*File, error) {
	fd, err := t.root.Openat("/"+e.Name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_NOFOLLOW)
	if err != nil {
		return nil, t.pathError(e.Name, err)
	}
	f := &File{tree: t, entry: e, fd: fd}
	if err := f.Unchanged(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Unchanged returns an error if the file was changed since the tree was walked.
func (f *File) Unchanged() error {
	var st unix.Stat_t
	if err := unix.Fstat(f.fd, &st); err != nil {
		return f.tree.pathError(f.entry.Name, err)
	}
	if stateOf(&st) != f.entry.at {
		return changed(f.entry.Name)
	}
	return nil
}

// Read implements io.Reader.
func (f *File) Read(p []byte) (int, error) {
	return f.read(p, func() (int, error) { return unix.Read(f.fd, p) })
}

// ReadAt implements io.ReaderAt.
func (f *File) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) && err == nil {
		var more int
		more, err = f.read(p[n:], func() (int, error) { return unix.Pread(f.fd, p[n:], off+int64(n)) })
		n += more
	}
	return n, err
}

func (f *File) read(p []byte, call func() (int, error)) (int, error) {
	n, err := walk.RetryOpen(call)
	if err != nil {
		return 0, &fs.PathError{Op: "read", Path: filepath.Join(f.tree.name, f.entry.Name), Err: err}
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// Close closes the file.
func (f *File) Close() error { return os.NewSyscallError("close", unix.Close(f.fd)) }

// Stat implements fs.File; there is only Unchanged.
func (f *File) Stat() (fs.FileInfo, error) { return nil, errors.ErrUnsupported }

// Files returns some entries of the tree as a file system, from which files are opened by name.
func (t *Tree) Files(entries []Entry) fs.FS {
	named := make(map[string]Entry, len(entries))
	for _, e := range entries {
		named[e.Name] = e
	}
	return files{tree: t, named: named}
}

type files struct {
	tree  *Tree
	named map[string]Entry
}

// Open implements fs.FS.
func (f files) Open(name string) (fs.File, error) {
	e, ok := f.named[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return f.tree.Open(e)
}
