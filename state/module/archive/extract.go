package archive

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// extract writes the entries. What is in the way is gone first.
func (x *extracted) extract(h *host.Host) error {
	for _, p := range x.todo.removed {
		if err := h.Files.RemoveAll(p); err != nil {
			return err
		}
	}
	if err := makeDirs(h, x.dir, 0o755); err != nil {
		return err
	}
	uid, gid, err := x.owner(h)
	if err != nil {
		return err
	}
	w := &writer{h: h, dir: x.dir, uid: uid, gid: gid, rules: newRules(), made: map[string]bool{}}
	if err := x.walk(h, w.write); err != nil {
		return err
	}
	return w.finish()
}

// writer puts entries below a directory.
type writer struct {
	h        *host.Host
	dir      string
	uid, gid int
	rules    *rules
	made     map[string]bool // directories that are known to be some
	late     []entry         // directories, whose modes come last: one may not be writable
}

func (w *writer) write(e entry, content io.Reader) error {
	if err := w.rules.admit(&e); err != nil { // what was listed may have been replaced since
		return err
	}
	if err := w.parents(path.Dir(e.name)); err != nil {
		return err
	}
	full := path.Join(w.dir, e.name)
	uid, gid := w.ownerOf(e)
	switch e.kind {
	case directory:
		w.late = append(w.late, e)
		return w.parents(e.name)
	case symlink:
		if err := w.h.Files.Symlink(e.link, full); err != nil {
			return err
		}
		return w.chown(full, uid, gid)
	case hardlink:
		if err := w.h.Files.RemoveAll(full); err != nil {
			return err
		}
		return w.h.Files.Link(path.Join(w.dir, e.link), full)
	}
	mode := e.mode
	if err := w.h.Files.Write(full, host.NewFile{Content: content, Mode: &mode, UID: uid, GID: gid, ReplaceLink: true}); err != nil {
		return err
	}
	if e.time.IsZero() {
		return nil
	}
	return w.h.Files.Chtimes(full, time.Now(), e.time)
}

// parents makes the directories down to one, and makes sure that none of them is a link.
func (w *writer) parents(dir string) error {
	if dir == "." || w.made[dir] {
		return nil
	}
	if err := w.parents(path.Dir(dir)); err != nil {
		return err
	}
	full := path.Join(w.dir, dir)
	info, err := w.h.Files.Lstat(full)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := w.h.Files.Mkdir(full, 0o755); err != nil {
			return err
		}
		if err := w.chown(full, w.uid, w.gid); err != nil {
			return err
		}
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is there and is no directory", full)
	}
	w.made[dir] = true
	return nil
}

// finish gives the directories of the archive their modes and owners.
func (w *writer) finish() error {
	for _, e := range slices.Backward(w.late) {
		full := path.Join(w.dir, e.name)
		uid, gid := w.ownerOf(e)
		if err := w.chown(full, uid, gid); err != nil {
			return err
		}
		if !e.native {
			continue
		}
		if err := w.h.Files.Chmod(full, e.mode); err != nil {
			return err
		}
	}
	return nil
}

// ownerOf is whom an entry is given to: by name where the host knows it, and else by number.
func (w *writer) ownerOf(e entry) (uid, gid int) {
	uid, gid = w.uid, w.gid
	if !w.h.Files.CanChown() {
		return -1, -1
	}
	if uid < 0 {
		uid = e.uid
		if u, ok, err := w.h.Accounts.User(e.user); e.user != "" && err == nil && ok {
			uid = u.UID
		}
	}
	if gid < 0 {
		gid = e.gid
		if g, ok, err := w.h.Accounts.Group(e.group); e.group != "" && err == nil && ok {
			gid = g.GID
		}
	}
	return uid, gid
}

func (w *writer) chown(full string, uid, gid int) error {
	if uid < 0 && gid < 0 || !w.h.Files.CanChown() {
		return nil
	}
	return w.h.Files.Chown(full, uid, gid)
}

// makeDirs makes a directory and those above it.
func makeDirs(h *host.Host, dir string, mode fs.FileMode) error {
	info, err := h.Files.Stat(dir)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return fmt.Errorf("%s is there and is no directory", dir)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := makeDirs(h, path.Dir(dir), mode); err != nil {
		return err
	}
	return h.Files.Mkdir(dir, mode)
}
