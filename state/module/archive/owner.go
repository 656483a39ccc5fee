package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// owner returns the owner that the state declares, -1 for that in the archive.
func (x *extracted) owner(h *host.Host) (uid, gid int, err error) {
	uid, gid = -1, -1
	if x.User != "" {
		u, ok, err := h.Accounts.User(x.User)
		if err != nil || !ok {
			return 0, 0, missingAccountError(err, "user "+x.User)
		}
		uid = u.UID
	}
	if x.Group != "" {
		g, ok, err := h.Accounts.Group(x.Group)
		if err != nil || !ok {
			return 0, 0, missingAccountError(err, "group "+x.Group)
		}
		gid = g.GID
	}
	return uid, gid, nil
}

func missingAccountError(err error, who string) error {
	if err != nil {
		return err
	}
	return diag.Prerequisite.Hint(fmt.Errorf("%s does not exist", who), "require the state that makes it")
}

// owned returns the paths, relative to the target, whose owner is enforced recursively.
func (x *extracted) owned() []string {
	if x.EnforceOwnershipOn != "" {
		return []string{"/" + strings.TrimPrefix(strings.TrimPrefix(path.Clean(x.EnforceOwnershipOn), x.dir), "/")}
	}
	if x.dotted { // the archive contains the target itself
		return []string{"/."}
	}
	dirs, files := x.top()
	var paths []string
	for _, name := range slices.Concat(dirs, files) {
		paths = append(paths, "/"+name)
	}
	return paths
}

// foreign reports whether any of the owned paths has another owner.
func (x *extracted) foreign(h *host.Host) (bool, error) {
	found := errors.New("found")
	err := x.visitForeign(h, func(host.Files, string, int, int) error { return found })
	if errors.Is(err, found) {
		return true, nil
	}
	return false, err
}

// own sets the owner of the owned paths.
func (x *extracted) own(h *host.Host) error {
	return x.visitForeign(h, func(files host.Files, p string, uid, gid int) error { return files.Chown(p, uid, gid) })
}

// visitor is called for a path below the target that has another owner.
type visitor func(files host.Files, p string, uid, gid int) error

// visitForeign calls visit for the owned paths that have another owner. It does not follow links.
func (x *extracted) visitForeign(h *host.Host, visit visitor) error {
	if x.User == "" && x.Group == "" || x.replaces(h) {
		return nil
	}
	uid, gid, err := x.owner(h)
	if err != nil {
		return err
	}
	files, err := h.Files.Beneath(x.dir)
	if found, err := walk.Found(err); !found {
		return err
	}
	defer files.Close()
	for _, p := range x.owned() {
		if err := foreignBelow(files, p, uid, gid, visit); err != nil {
			return err
		}
	}
	return nil
}

func foreignBelow(files host.Files, p string, uid, gid int, visit visitor) error {
	info, err := files.Lstat(p)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if uid >= 0 && info.UID != uid || gid >= 0 && info.GID != gid {
		if err := visit(files, p, uid, gid); err != nil {
			return err
		}
	}
	if !info.IsDir() {
		return nil
	}
	names, err := files.ReadDir(p)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := foreignBelow(files, path.Join(p, name), uid, gid, visit); err != nil {
			return err
		}
	}
	return nil
}
