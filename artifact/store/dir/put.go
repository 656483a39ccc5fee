package dir

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Put writes an object.
func (s *Store) Put(ctx context.Context, key string, r io.Reader,
	size int64, cond store.Condition) (store.Info, error) {
	o := operation{store.OpPut, s.path, key}
	root, err := s.beginPut(ctx, o)
	if err != nil {
		return store.Info{}, err
	}
	defer root.Close()
	if store.MayDisplace(ctx) {
		clear(root, path.Dir(key))
	}
	if err := makeDirs(root, path.Dir(key)); err != nil {
		return store.Info{}, o.failed(err)
	}
	s.clean(root, path.Dir(key))
	info, err := put(ctx, root, key, source{ctx, r, size}, cond, s.LockWait)
	if err != nil && ctx.Err() != nil {
		return store.Info{}, o.stopped(ctx)
	}
	return info, o.failed(err)
}

// beginPut opens the directory for a write. If it is missing or empty, only a write that may set up a store
// continues.
func (s *Store) beginPut(ctx context.Context, o operation) (*os.Root, error) {
	mayCreate := s.Create || store.MayCreate(ctx)
	root, err := s.begin(ctx, o)
	if mayCreate && errors.Is(err, store.ErrNoStore) {
		if err := makeStore(s.path); err != nil {
			return nil, o.failed(err)
		}
		return s.begin(ctx, o)
	}
	if err != nil || mayCreate {
		return root, err
	}
	empty, err := isEmpty(root)
	if err == nil && !empty {
		return root, nil
	}
	_ = root.Close() // nothing was written
	if err != nil {
		return nil, o.failed(err)
	}
	return nil, diag.StoreURL.Hint(&store.Error{Op: o.op, Object: o.object(), Kind: store.ErrNoStore,
		Cause: errors.New("the directory is empty")},
		"%s", s.missing())
}

// isEmpty reports whether a directory contains only what new filesystems contain.
func isEmpty(root *os.Root) (bool, error) {
	f, err := root.Open(".")
	if err != nil {
		return false, err
	}
	defer f.Close()
	names, err := f.Readdirnames(8)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return !slices.ContainsFunc(names, func(name string) bool { return name != "lost+found" }), err
}

// source is the source of a Put.
type source struct {
	ctx  context.Context
	r    io.Reader
	size int64
}

// Read fails when the context ends, and marks errors of the source.
func (s source) Read(p []byte) (int, error) {
	if s.ctx.Err() != nil {
		return 0, context.Cause(s.ctx)
	}
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF {
		err = badSource{err}
	}
	return n, err
}

func put(ctx context.Context, root *os.Root, key string, from source,
	cond store.Condition, wait time.Duration) (store.Info, error) {
	if g, ok := store.StagedOf(ctx).(*staged); ok && g.of(root) {
		return g.put(ctx, key, from.size, cond, wait)
	}
	name, f, err := create(root, path.Dir(key))
	if err != nil {
		return store.Info{}, err
	}
	defer f.Close() // which releases the lock that protects it from clean
	if err = fill(root, name, f, from); err == nil {
		err = replace(ctx, root, name, key, cond, wait)
	}
	if err != nil {
		_ = root.Remove(name) // clean removes what remains
		return store.Info{}, err
	}
	if err := syncDir(root, path.Dir(key)); err != nil {
		return store.Info{}, err
	}
	return describe(f, key)
}

// create makes a temporary file in a directory of the store, and locks it.
func create(root *os.Root, dir string) (name string, f *os.File, err error) {
	name = path.Join(dir, ours+"put-"+rand.Text())
	f, err = root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o644)
	if err != nil {
		return "", nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = root.Remove(name) // clean removes what remains
		return "", nil, errors.Join(fmt.Errorf("locking a new file: %w", err), f.Close())
	}
	return name, f, nil
}

// fill writes the source to the temporary file and syncs it.
func fill(root *os.Root, name string, f *os.File, from source) error {
	n, err := io.Copy(f, io.LimitReader(from, from.size+1))
	if err != nil {
		return err
	}
	if n != from.size {
		return badSource{fmt.Errorf("the source does not have the announced %d bytes", from.size)}
	}
	return finish(root, name, f)
}

// finish gives the temporary file its time and syncs it.
func finish(root *os.Root, name string, f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	at := written(info.ModTime(), time.Now())
	if err := root.Chtimes(name, at, at); err != nil {
		return err
	}
	return f.Sync()
}

// written returns the time of a new file, from the time that the file system gave it and that of this process. Kernels
// before 6.13 set file times with the resolution of a tick, in which a file can be replaced twice and reuse the first
// inode. The clock of the process is finer and makes all versions differ. If it is not the clock of the file system, as
// that of a host with a wrong clock and a network file system, only its fractions are used.
func written(system, process time.Time) time.Time {
	const tick = 10 * time.Millisecond // the longest
	if process.Sub(system).Abs() < time.Second {
		return process
	}
	return system.Truncate(tick).Add(time.Duration(process.UnixNano()) % tick)
}

// replace renames the temporary file to the object if the condition is met.
func replace(ctx context.Context, root *os.Root, name, key string, cond store.Condition, wait time.Duration) error {
	unlock, err := lock(ctx, root, path.Dir(key), wait)
	if err != nil {
		return err
	}
	defer unlock()
	if store.MayDisplace(ctx) {
		if err := displace(root, key); err != nil {
			return err
		}
	}
	if cond != (store.Condition{}) {
		if err := meets(root, key, cond); err != nil {
			return err
		}
	}
	return root.Rename(name, key)
}

func meets(root *os.Root, key string, cond store.Condition) error {
	f, info, err := open(root, key)
	switch {
	case absent(err) && cond.IfMatch == "":
		return nil
	case absent(err):
		return store.ErrPrecondition
	case err != nil:
		return err
	}
	_ = f.Close() // it was only read
	if cond.IfAbsent || cond.IfMatch != info.ETag {
		return store.ErrPrecondition
	}
	return nil
}

// makeStore makes the store's directory, and those above it, like makeDirs.
func makeStore(dir string) error {
	err := os.Mkdir(dir, 0o755)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeStore(filepath.Dir(dir)); err != nil {
			return err
		}
		err = os.Mkdir(dir, 0o755)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	above, err := walk.OpenDir(filepath.Dir(dir))
	if err != nil {
		return err
	}
	defer above.Close()
	return above.Sync()
}

// makeDirs makes a directory that survives a power failure.
func makeDirs(root *os.Root, dir string) error {
	if dir == "." {
		return nil
	}
	if stat, err := root.Stat(dir); err == nil && stat.IsDir() {
		return nil
	}
	if err := makeDirs(root, path.Dir(dir)); err != nil {
		return err
	}
	if err := root.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if stat, err := root.Stat(dir); err != nil || !stat.IsDir() {
		return cmp.Or(err, error(&fs.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR}))
	}
	return syncDir(root, path.Dir(dir))
}

func syncDir(root *os.Root, dir string) error {
	f, err := openDir(root, dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// openDir opens a directory, and fails for anything else.
func openDir(root *os.Root, dir string) (*os.File, error) {
	return root.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
}

func readDir(root *os.Root, dir string) ([]fs.DirEntry, error) {
	f, err := openDir(root, dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.ReadDir(-1)
}

// abandoned is how old a temporary file must be to count as abandoned.
const abandoned = time.Minute

// clean removes the files of dead writers from a directory, once per directory. A living writer holds the lock of its
// file. Files that cannot be removed do no harm.
func (s *Store) clean(root *os.Root, dir string) {
	if _, done := s.cleaned.LoadOrStore(dir, true); done {
		return
	}
	entries, err := readDir(root, dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		stat, err := e.Info()
		if !strings.HasPrefix(e.Name(), ours+"put-") || err != nil || time.Since(stat.ModTime()) < abandoned {
			continue
		}
		removeAbandoned(root, path.Join(dir, e.Name()))
	}
}

func removeAbandoned(root *os.Root, name string) {
	_ = ifAbandoned(root, name, func() error { return root.Remove(name) }) // see clean
}

// ifAbandoned calls do while it holds the lock of a temporary file, unless a living writer holds it.
func ifAbandoned(root *os.Root, name string, do func() error) error {
	f, err := walk.Regular(root.OpenFile(name, os.O_RDWR|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return err
	}
	return do()
}
