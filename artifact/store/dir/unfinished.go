package dir

import (
	"context"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// Unfinished lists the temporary files of writers that have ended. Put removes only those in the directory of its
// object.
func (s *Store) Unfinished(ctx context.Context, prefix string) (all []store.Unfinished, err error) {
	o := operation{store.OpList, s.path, prefix}
	root, err := s.root(o)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	top := path.Clean(prefix)
	err = fs.WalkDir(root.FS(), top, func(name string, e fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return o.stopped(ctx)
		}
		if err != nil {
			if absent(err) {
				return nil // it was removed meanwhile
			}
			return err
		}
		if !strings.HasPrefix(e.Name(), ours+"put-") || !e.Type().IsRegular() {
			return nil
		}
		stat, err := e.Info()
		if absent(err) {
			return nil
		}
		if err != nil || time.Since(stat.ModTime()) < abandoned {
			return err
		}
		_ = ifAbandoned(root, name, func() error { // a file that cannot be opened does no harm
			all = append(all, store.Unfinished{Key: name, Begun: stat.ModTime(), Dead: true})
			return nil
		})
		return nil
	})
	if err != nil {
		return nil, o.failed(err)
	}
	return all, nil
}

// Abort removes a temporary file that Unfinished listed.
func (s *Store) Abort(_ context.Context, u store.Unfinished) error {
	o := operation{store.OpDelete, s.path, u.Key}
	root, err := s.root(o)
	if err != nil {
		return err
	}
	defer root.Close()
	err = ifAbandoned(root, u.Key, func() error { return root.Remove(u.Key) })
	if err == nil || absent(err) {
		return nil
	}
	return o.failed(err)
}
