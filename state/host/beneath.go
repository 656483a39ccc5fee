package host

import (
	"errors"
	"path"

	"golang.org/x/sys/unix"
)

// beneath is a tree whose root is a directory of another tree.
type beneath struct{ *tree }

// Beneath returns a tree with another root. It shares everything else with t: the recorder, the counters and the cache.
func (t *tree) Beneath(dir string) (Beneath, error) {
	root, err := t.root.Beneath(dir)
	if err != nil {
		return nil, t.machineErrors.Note(dir, err)
	}
	sub := *t
	sub.root, sub.above = root, t.whole(dir)
	sub.temporary = t.temporary || ownTemp(dir)
	sub.changed = func(p string) { t.changed(path.Join(dir, p)) }
	return beneath{&sub}, nil
}

func (b beneath) Free() (bytes, files int64, err error) { return b.root.Free() }

func (b beneath) SyncAll() error {
	fd, err := b.openat("/", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(fd), unix.Close(fd))
}

func (b beneath) Close() error { return b.root.Close() }
