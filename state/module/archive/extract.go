package archive

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

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
	w := &writer{h: h, files: staged, plain: host.CheckTrusted(h.Files, x.file()) != nil ||
		host.CheckTrusted(h.Files, x.dir) != nil,
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
			return fmt.Errorf("syncing the extracted files: %w", err)
		}
	}
	if err := x.clear(files, stage); err != nil {
		return err
	}
	m := &mover{ctx: ctx, files: files, dir: x.dir, stage: stage, writer: w, keep: x.format == "zip"}
	return errors.Join(m.move("/"), w.redress(files, m.there))
}

// clear removes the files that are in the way.
func (x *extracted) clear(files host.Files, stage string) error {
	removed := make([]string, 0, len(x.todo.removed))
	for _, p := range x.todo.removed {
		removed = append(removed, "/"+relative(x.dir, p))
	}
	if x.CleanParent && len(removed) > 0 {
		var err error
		if removed, err = allBut(files, stage); err != nil {
			return err
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

// allBut lists the paths of the entries in the root of files, except the given one.
func allBut(files host.Files, without string) ([]string, error) {
	names, err := files.ReadDir("/")
	if err != nil {
		return nil, err
	}
	var all []string
	for _, name := range names {
		if "/"+name != without {
			all = append(all, "/"+name)
		}
	}
	return all, nil
}

// makeDirs creates a directory and its parents for a user; -1 for the user of the agent.
func makeDirs(h *host.Host, dir string, mode fs.FileMode, uid int) error {
	info, err := h.Files.Stat(dir)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return host.Unlike(dir, info, host.ADirectory, "")
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
