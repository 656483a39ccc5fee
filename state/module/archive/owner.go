package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// owner is whom the files are given to, -1 for whom the archive says.
func (x *extracted) owner(h *host.Host) (uid, gid int, err error) {
	uid, gid = -1, -1
	if x.User != "" {
		u, ok, err := h.Accounts.User(x.User)
		if err != nil || !ok {
			return 0, 0, nobodyError(err, "user "+x.User)
		}
		uid = u.UID
	}
	if x.Group != "" {
		g, ok, err := h.Accounts.Group(x.Group)
		if err != nil || !ok {
			return 0, 0, nobodyError(err, "group "+x.Group)
		}
		gid = g.GID
	}
	return uid, gid, nil
}

func nobodyError(err error, who string) error {
	if err != nil {
		return err
	}
	return diag.WithHint(fmt.Errorf("%s does not exist", who), "require the state that makes it")
}

// owned are the paths whose owner is seen to, with all that is below them.
func (x *extracted) owned() []string {
	if x.EnforceOwnershipOn != "" {
		return []string{strings.TrimSuffix(x.EnforceOwnershipOn, "/")}
	}
	dirs, files := x.top()
	var paths []string
	for _, name := range slices.Concat(dirs, files) {
		paths = append(paths, path.Join(x.dir, name))
	}
	return paths
}

// foreign reports whether one of these belongs to somebody else.
func (x *extracted) foreign(h *host.Host) (bool, error) {
	found := errors.New("found")
	err := x.visitForeign(h, func(string, int, int) error { return found })
	if errors.Is(err, found) {
		return true, nil
	}
	return false, err
}

// own gives the files to whom they shall belong.
func (x *extracted) own(h *host.Host) error { return x.visitForeign(h, h.Files.Chown) }

func (x *extracted) visitForeign(h *host.Host, visit func(p string, uid, gid int) error) error {
	if x.User == "" && x.Group == "" {
		return nil
	}
	uid, gid, err := x.owner(h)
	if err != nil {
		return err
	}
	for _, p := range x.owned() {
		if err := foreignBelow(h, p, uid, gid, visit); err != nil {
			return err
		}
	}
	return nil
}

func foreignBelow(h *host.Host, p string, uid, gid int, visit func(p string, uid, gid int) error) error {
	info, err := h.Files.Lstat(p)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if uid >= 0 && info.UID != uid || gid >= 0 && info.GID != gid {
		if err := visit(p, uid, gid); err != nil {
			return err
		}
	}
	if !info.IsDir() {
		return nil
	}
	names, err := h.Files.ReadDir(p)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := foreignBelow(h, path.Join(p, name), uid, gid, visit); err != nil {
			return err
		}
	}
	return nil
}
