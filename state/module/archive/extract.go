package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// extract writes the entries to a temporary directory below the target and moves them when all are written.
// Until then, the content of the target does not change.
func (x *extracted) extract(ctx context.Context, h *host.Host) error {
	uid, gid, err := x.owner(h)
	if err != nil {
		return err
	}
	made, err := x.makeDir(h, uid)
	if err != nil {
		return err
	}
	err = x.extractInto(ctx, h, uid, gid)
	if err != nil && made {
		return errors.Join(err, removeEmpty(h, x.dir))
	}
	return err
}

// makeDir creates the target and its missing parents for the user of the state. Like Salt, it does not set
// their group. With clean_parent it replaces a link at the path.
func (x *extracted) makeDir(h *host.Host, uid int) (made bool, err error) {
	info, err := h.Files.Lstat(x.dir)
	found, err := walk.Found(err)
	if err != nil {
		return false, err
	}
	if found && x.CleanParent && info.IsLink() {
		if err := h.Files.Remove(x.dir); err != nil {
			return false, err
		}
	}
	return !found, makeDirs(h, x.dir, 0o755, uid)
}

// removeEmpty removes a directory if it is empty.
func removeEmpty(h *host.Host, dir string) error {
	names, err := h.Files.ReadDir(dir)
	if err != nil || len(names) > 0 {
		return err
	}
	return h.Files.Remove(dir)
}

func (x *extracted) extractInto(ctx context.Context, h *host.Host, uid, gid int) (err error) {
	files, err := h.Files.Beneath(x.dir)
	if err != nil {
		return err
	}
	defer files.Close()
	space := &spaceLimit{files: files, limits: x.limits()}
	if err := space.fits(x.size, len(x.contents)); err != nil {
		return err
	}
	stage := "/" + host.TempName("extract-*")
	if err := files.Mkdir(stage, 0o700); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.RemoveAll(stage)) }()
	staged, err := files.Beneath(stage)
	if err != nil {
		return err
	}
	defer staged.Close()
	w := &writer{h: h, files: staged, plain: host.Vouched(h.Files, x.file()) != nil || host.Vouched(h.Files, x.dir) != nil,
		space: space, uid: uid, gid: gid, rules: newRules(x.limits(), x.linksBelow()), made: map[string]bool{},
		unsynced: len(x.contents) > fewFiles}
	if err := x.walk(ctx, h, w.write); err != nil {
		return err
	}
	if err := w.rules.complete(); err != nil {
		return err
	}
	if err := w.dress(); err != nil {
		return err
	}
	if w.unsynced {
		if err := staged.SyncAll(); err != nil {
			return fmt.Errorf("syncing what was extracted: %w", err)
		}
	}
	if err := x.clear(files, stage); err != nil {
		return err
	}
	m := &mover{ctx: ctx, files: files, stage: stage, writer: w, keep: x.format == "zip"}
	return errors.Join(m.move("/"), w.redress(files, m.there))
}

// clear removes what is in the way.
func (x *extracted) clear(files host.Files, stage string) error {
	removed := make([]string, 0, len(x.todo.removed))
	for _, p := range x.todo.removed {
		removed = append(removed, "/"+relative(x.dir, p))
	}
	if x.CleanParent && len(removed) > 0 {
		names, err := files.ReadDir("/")
		if err != nil {
			return err
		}
		removed = removed[:0]
		for _, name := range names {
			if "/"+name != stage {
				removed = append(removed, "/"+name)
			}
		}
	}
	for _, p := range removed {
		// The path was below a link that this loop has removed.
		if err := files.RemoveAll(p); err != nil && !errors.Is(err, host.ErrLink) {
			return err
		}
	}
	return nil
}

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

// makeDirs creates a directory and its parents for a user; -1 for the user of the agent.
func makeDirs(h *host.Host, dir string, mode fs.FileMode, uid int) error {
	info, err := h.Files.Stat(dir)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return fmt.Errorf("%s exists and is not a directory", dir)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := makeDirs(h, path.Dir(dir), mode, uid); err != nil {
		return err
	}
	if err := h.Files.Mkdir(dir, mode); err != nil || uid < 0 || !h.Files.CanChown() {
		return err
	}
	return h.Files.Chown(dir, uid, -1)
}
