package dir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// staged is a temporary file that becomes an object when its key is known.
type staged struct {
	root *os.Root
	name string
	f    *os.File // its lock protects it from clean
	size int64
	used bool // it is an object, or was removed
}

// Stage begins an object.
func (s *Store) Stage(ctx context.Context, folder string) (store.Staged, error) {
	o := operation{store.OpPut, s.path, folder}
	root, err := s.beginPut(ctx, o)
	if err != nil {
		return nil, err
	}
	err = makeDirs(root, folder)
	if err == nil {
		s.clean(root, folder)
		g := &staged{root: root}
		if g.name, g.f, err = create(root, folder); err == nil {
			return g, nil
		}
	}
	return nil, errors.Join(o.failed(err), root.Close())
}

func (g *staged) Write(p []byte) (int, error) {
	n, err := g.f.Write(p)
	g.size += int64(n)
	return n, err
}

// of reports whether the file can become an object below a root.
func (g *staged) of(root *os.Root) bool {
	ours, err := g.root.Stat(".")
	theirs, failed := root.Stat(".")
	return !g.used && err == nil && failed == nil && os.SameFile(ours, theirs)
}

// put renames the file to an object.
func (g *staged) put(ctx context.Context, key string, size int64, cond store.Condition, wait time.Duration) (store.Info,
	error) {
	if g.size != size {
		return store.Info{}, badSource{fmt.Errorf("%d bytes were staged, not the announced %d", g.size, size)}
	}
	err := finish(g.root, g.name, g.f)
	if err == nil {
		err = replace(ctx, g.root, g.name, key, cond, wait)
	}
	if err != nil {
		return store.Info{}, err
	}
	g.used = true
	if err := syncDir(g.root, path.Dir(key)); err != nil {
		return store.Info{}, err
	}
	return describe(g.f, key)
}

// Close removes the file unless it is an object.
func (g *staged) Close() error {
	var err error
	if !g.used {
		g.used = true
		err = g.root.Remove(g.name)
	}
	return errors.Join(err, g.f.Close(), g.root.Close())
}
