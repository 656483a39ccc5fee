package archive

import (
	"io"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// writer writes entries to an empty directory that only the agent can write to.
type writer struct {
	h        *host.Host
	files    host.Files
	space    *spaceLimit
	uid, gid int
	plain    bool // drop setuid and setgid bits, since files have another owner than the user who could change the archive
	rules    *rules
	made     map[string]bool // directories that exist
	late     []entry         // directories, whose modes are set last since they may not be writable
	unsynced bool            // files are synced together after all are written
}

// fewFiles is the largest number of entries that are synced one by one, which takes about a millisecond each.
// Syncing the whole file system also writes the data of other programs.
const fewFiles = 16

func (w *writer) write(e entry, content io.Reader) error {
	if err := w.rules.admit(&e); err != nil { // the archive may have changed since it was listed
		return err
	}
	if err := w.parents(path.Dir(e.name)); err != nil {
		return err
	}
	full := "/" + e.name
	uid, gid := w.ownerOf(e)
	switch e.kind {
	case directory:
		w.late = append(w.late, e)
		return w.parents(e.name)
	case symlink:
		if err := w.files.Symlink(e.link, full); err != nil {
			return err
		}
		return w.chown(full, uid, gid)
	case hardlink:
		if err := w.files.RemoveAll(full); err != nil {
			return err
		}
		return w.files.Link("/"+e.link, full)
	}
	mode := e.mode
	if w.plain {
		mode &^= fs.ModeSetuid | fs.ModeSetgid
	}
	if err := w.files.Write(full, host.NewFile{Content: w.space.of(content), Mode: &mode, UID: uid, GID: gid,
		ReplaceLink: true, Unsynced: w.unsynced}); err != nil {
		return err
	}
	if e.time.IsZero() {
		return nil
	}
	return w.files.Chtimes(full, time.Now(), e.time)
}

// parents creates a directory and its parents.
func (w *writer) parents(dir string) error {
	if dir == "." || w.made[dir] {
		return nil
	}
	if err := w.parents(path.Dir(dir)); err != nil {
		return err
	}
	full := "/" + dir
	if err := w.files.Mkdir(full, 0o755); err != nil {
		return err
	}
	w.made[dir] = true
	return w.chown(full, w.uid, w.gid)
}

// dress sets the owners and modes of the directories from the archive. Without root, it keeps them writable
// until the files in them have been moved.
func (w *writer) dress() error {
	for _, e := range slices.Backward(w.late) {
		mode := e.mode
		if !w.h.Files.CanChown() {
			mode |= 0o700
		}
		if err := w.dressOne(w.files, e, mode); err != nil {
			return err
		}
	}
	return nil
}

// redress sets the owners and modes of directories that existed before, and without root those that dress had
// to keep writable.
func (w *writer) redress(files host.Files, there map[string]bool) error {
	for _, e := range slices.Backward(w.late) {
		if !there["/"+e.name] && w.h.Files.CanChown() {
			continue
		}
		if err := w.dressOne(files, e, e.mode); err != nil {
			return err
		}
	}
	return nil
}

// dressOne changes a directory through its entry "." so that it cannot be replaced by something else meanwhile.
func (w *writer) dressOne(files host.Files, e entry, mode fs.FileMode) error {
	full := "/" + e.name + "/."
	uid, gid := w.ownerOf(e)
	chown := w.mayChown(uid, gid)
	switch {
	case chown && e.native:
		return files.Own(full, uid, gid, &mode)
	case chown:
		return files.Chown(full, uid, gid)
	case e.native:
		return files.Chmod(full, mode)
	}
	return nil
}

// ownerOf returns the owner of an entry: that of the state, or of the archive, by name if the host has such an
// account and otherwise by number.
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

func (w *writer) mayChown(uid, gid int) bool {
	return (uid >= 0 || gid >= 0) && w.h.Files.CanChown()
}

func (w *writer) chown(full string, uid, gid int) error {
	if !w.mayChown(uid, gid) {
		return nil
	}
	return w.files.Chown(full, uid, gid)
}
