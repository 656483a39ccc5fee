package dir

import (
	"cmp"
	"context"
	"io/fs"
	"iter"
	"os"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/structsort"
)

// List lists the objects by walking the directory.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		o := operation{store.OpList, s.path, prefix}
		root, err := s.root(o)
		if err != nil {
			yield(store.Info{}, err)
			return
		}
		defer root.Close()
		w := listing{ctx: ctx, op: o, root: root, yield: yield}
		dir, start := path.Split(prefix)
		if dir = cmp.Or(strings.TrimSuffix(dir, "/"), "."); fs.ValidPath(dir) {
			w.dir(dir, start)
		}
	}
}

// listing is a listing in progress.
type listing struct {
	ctx   context.Context
	op    operation
	root  *os.Root
	yield func(store.Info, error) bool
}

// dir yields the objects in a directory whose names begin with start, and reports whether to continue.
func (w *listing) dir(dir, start string) bool {
	if w.ctx.Err() != nil {
		w.yield(store.Info{}, w.op.stopped(w.ctx))
		return false
	}
	entries, err := readDir(w.root, dir)
	if absent(err) {
		return true
	}
	if err != nil {
		w.yield(store.Info{}, w.op.failed(err))
		return false
	}
	structsort.Func(entries, func(a, b fs.DirEntry) int { return strings.Compare(sortKey(a), sortKey(b)) })
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, start) || strings.HasPrefix(name, ours) {
			continue
		}
		if !w.entry(path.Join(dir, name)) {
			return false
		}
	}
	return true
}

// sortKey returns a key by which directories sort like the keys in them: a/x comes after a-b.
func sortKey(e fs.DirEntry) string {
	if e.IsDir() {
		return e.Name() + "/"
	}
	return e.Name()
}

func (w *listing) entry(key string) bool {
	stat, err := w.root.Stat(key) // follows links, like Get
	switch {
	case err != nil:
		return true // it has disappeared, or is a link that leads out and cannot be read as an object
	case stat.IsDir():
		return w.dir(key, "")
	case !stat.Mode().IsRegular() || store.CheckKey(key) != nil:
		return true
	}
	return w.yield(store.Info{Key: key, Size: stat.Size(), Modified: stat.ModTime()}, nil)
}
