package git

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// actFor determines the user as whom git runs. The configuration of a clone names programs that git runs
// (hooks, filters, a file system monitor, an ssh command). git therefore runs as the owner of the clone, or of
// the directory in which it is created, and never as root for another user. A clone with parts of several users
// is refused.
func (a *access) actFor(h *host.Host, dir string) error {
	owner, err := h.OwnerOf(dir)
	if err != nil {
		return err
	}
	if err := a.ofOne(h, dir); err != nil {
		return err
	}
	switch {
	case owner == "" && a.User != "", owner == a.User:
		return nil
	case a.User != "":
		return diag.WithHint(fmt.Errorf("%s belongs to %s, and git is to run as %s there: a clone names programs "+
			"that git runs", dir, owner, a.User),
			"set user: %s, or give the clone to %s", owner, a.User)
	case len(a.Identity) > 0 || a.HTTPSPass != "":
		return diag.WithHint(fmt.Errorf("%s belongs to %s, who would get the key or password that is for root", dir, owner),
			"set user: %s, who may read them then, or give the clone to root", owner)
	}
	a.User = owner
	return nil
}

// ofOne refuses a clone if the files that name programs belong to a user other than its owner and root.
func (a *access) ofOne(h *host.Host, dir string) error {
	top, err := h.Files.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, part := range []string{".git", "config", "hooks", "modules", ".git/config", ".git/config.worktree",
		".git/hooks", ".git/modules", ".git/objects", "objects"} {
		info, err := h.Files.Lstat(path.Join(dir, part))
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, host.ErrNotDir):
		case err != nil:
			return err
		case info.UID != 0 && info.UID != top.UID:
			return diag.WithHint(fmt.Errorf("%s belongs to user %d, and the clone %s to user %d", path.Join(dir, part),
				info.UID, dir, top.UID),
				"give all of the clone to one user: chown -R")
		}
	}
	return nil
}
