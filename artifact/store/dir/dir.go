// Package dir keeps objects as files in a directory: on a workstation, on a mounted share, or on a disk that is carried
// to a place without network.
//
// A key is the path of a file below the directory, so the tree can be inspected, copied with rsync or served by any web
// server. Odd keys and symbolic links never lead out of the directory. A write goes to a temporary file beside its
// target, is synced, and only then renamed, so that a reader sees the old object or the new one, even after a power
// failure. A write neither makes the store's directory nor writes into an empty one, which may be the mount point of a
// share that is not mounted, unless it sets up a store. Writers of one directory use a lock file, so that conditional
// writes are atomic between processes, and between hosts if the filesystem's locks are.
// The names of temporary and lock files start with .corpus-, and they are never listed.
package dir

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Store is a store in a directory.
type Store struct {
	// LockWait is how long a writer waits for another one; a minute by default.
	LockWait time.Duration
	// Create allows every Put to make the directory, or to write into an empty one. Otherwise only a Put with a
	// context of [store.Creating] may do so, since such a directory is usually that of a share that is not mounted.
	Create bool

	path    string
	cleaned sync.Map // directories in which abandoned temporary files were removed
}

// New returns the store in the directory at path. It reads nothing yet.
func New(path string) *Store { return &Store{path: path} }

// ours is the prefix of files that are not objects.
const ours = ".corpus-"

// smallObject is the largest size for which the ETag is the hash of the content. Conditions are used with such
// objects. The ETag of a larger object is made from the identity of its file, since hashing would cost as much as
// reading it.
const smallObject = 1 << 20

// Get opens an object from an offset on.
func (s *Store) Get(ctx context.Context, key string, from int64) (io.ReadCloser, store.Info, error) {
	return s.GetRange(ctx, key, store.Range{From: from})
}

// GetRange opens a part of an object.
func (s *Store) GetRange(ctx context.Context, key string, part store.Range) (io.ReadCloser, store.Info, error) {
	o := operation{store.OpGet, s.path, key}
	root, err := s.begin(ctx, o)
	if err != nil {
		return nil, store.Info{}, err
	}
	defer root.Close()
	f, info, err := open(root, key)
	if leadsNowhere(err) && store.MayDisplace(ctx) {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, store.Info{}, o.failed(err)
	}
	if err := part.Outdated(info.ETag); err != nil {
		_ = f.Close() // nothing was read
		return nil, store.Info{}, o.failed(err)
	}
	left := max(info.Size-part.From, 0)
	if part.Length > 0 {
		left = min(left, part.Length)
	}
	return &body{ctx: ctx, op: o, f: f, at: part.From, left: left}, info, nil
}

// begin makes the checks of every operation, and opens the directory.
func (s *Store) begin(ctx context.Context, o operation) (*os.Root, error) {
	if ctx.Err() != nil {
		return nil, o.stopped(ctx)
	}
	if err := store.CheckKey(o.key); err != nil {
		return nil, err
	}
	for segment := range strings.SplitSeq(o.key, "/") {
		if strings.HasPrefix(segment, ours) {
			return nil, diag.StoreURL.Hint(fmt.Errorf("%q cannot be the key of an object in a directory", o.key),
				"names that start with %s are the store's own", ours)
		}
	}
	return s.root(o)
}

func (s *Store) root(o operation) (*os.Root, error) {
	root, err := walk.OpenTree(s.path)
	switch {
	case err != nil && (absent(err) || notDirectory(s.path)):
		return nil, diag.StoreURL.Hint(&store.Error{Op: o.op, Object: o.object(), Kind: store.ErrNoStore},
			"%s", s.missing())
	case err != nil:
		return nil, o.failed(err)
	}
	return root, nil
}

// missing returns the hint for a directory that is absent or empty.
func (s *Store) missing() string {
	return fmt.Sprintf("check the path %s and, if it is on another disk or a share, that it is mounted (findmnt --target "+
		"%[1]s); "+
		"`corpus store init` sets up a new store there", s.path)
}

func notDirectory(path string) bool {
	stat, err := os.Stat(path)
	return err == nil && !stat.IsDir()
}

// open opens an object's file. It does not block on a named pipe.
func open(root *os.Root, key string) (*os.File, store.Info, error) {
	f, err := root.OpenFile(key, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, store.Info{}, err
	}
	info, err := describe(f, key)
	if err != nil {
		_ = f.Close() // the first error matters more
		return nil, store.Info{}, err
	}
	return f, info, nil
}

func describe(f *os.File, key string) (store.Info, error) {
	stat, err := f.Stat()
	if err != nil {
		return store.Info{}, err
	}
	if !stat.Mode().IsRegular() {
		return store.Info{}, fs.ErrNotExist
	}
	info := store.Info{Key: key, Size: stat.Size(), Modified: stat.ModTime()}
	if info.Size > smallObject {
		info.ETag = identity(stat)
		return info, nil
	}
	data, err := io.ReadAll(io.NewSectionReader(f, 0, info.Size))
	info.ETag = etagOf(data)
	return info, err
}

func etagOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

// identity returns an ETag for a large file: every write changes one of these properties, see Put.
func identity(stat fs.FileInfo) string {
	inode := uint64(0)
	if sys, ok := stat.Sys().(*syscall.Stat_t); ok {
		inode = sys.Ino
	}
	return fmt.Sprintf("%x-%x-%x", inode, stat.ModTime().UnixNano(), stat.Size())
}

// Delete removes an object.
func (s *Store) Delete(ctx context.Context, key string) error {
	o := operation{store.OpDelete, s.path, key}
	root, err := s.begin(ctx, o)
	if err != nil {
		return err
	}
	defer root.Close()
	stat, err := root.Stat(key)
	if absent(err) || err == nil && stat.IsDir() {
		return nil
	}
	if err != nil {
		return o.failed(err)
	}
	unlock, err := lock(ctx, root, path.Dir(key), s.LockWait)
	if err != nil {
		return o.failed(err)
	}
	defer unlock()
	if err := root.Remove(key); err != nil && !absent(err) {
		return o.failed(err)
	}
	return o.failed(syncDir(root, path.Dir(key)))
}

// operation describes an operation for errors.
type operation struct {
	op       store.Op
	dir, key string
}

func (o operation) stopped(ctx context.Context) error { return store.Stopped(ctx, o.op, o.object()) }

func (o operation) object() string { return filepath.Join(o.dir, o.key) }

// body reads a part of a file.
type body struct {
	ctx  context.Context
	op   operation
	f    *os.File
	at   int64
	left int64
}

func (b *body) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	if b.ctx.Err() != nil {
		return 0, b.op.stopped(b.ctx)
	}
	n, err := b.f.ReadAt(p[:min(int64(len(p)), b.left)], b.at)
	b.at += int64(n)
	b.left -= int64(n)
	if n > 0 {
		return n, nil
	}
	if err == io.EOF { // another program has truncated the file
		err = io.ErrUnexpectedEOF
	}
	return 0, b.op.failed(err)
}

func (b *body) Close() error { return b.f.Close() }
