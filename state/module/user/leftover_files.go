package user

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// leftovers returns warnings about files of a removed user that a new user would own because it gets the same uid.
// It searches the directory of the new home, the mailboxes and the crontabs; searching the whole disk would
// take too long.
func leftovers(h *host.Host, u host.User) ([]string, error) {
	if _, shared, err := h.Accounts.UserByID(u.UID); shared || err != nil {
		return nil, err
	}
	var left []string
	for _, dir := range []string{path.Dir(u.Home), "/var/mail", "/var/spool/cron/crontabs"} {
		if !path.IsAbs(dir) || dir == "/" || h.CheckPath(dir) != nil {
			continue
		}
		found, err := ownedIn(h, dir, u)
		if err != nil {
			return nil, err
		}
		left = append(left, found...)
	}
	if len(left) == 0 {
		return nil, nil
	}
	return []string{fmt.Sprintf("uid %d, which user %s gets, owns %s already, as of a user who was removed; "+
		"`find / -xdev -uid %d` shows all such files; remove them, or set another uid", u.UID,
		u.Name, strings.Join(left, ", "), u.UID)}, nil
}

// ownedIn lists the entries of a directory that belong to the user's uid but do not have the user's name. It
// returns none if the directory cannot be read.
func ownedIn(h *host.Host, dir string, u host.User) ([]string, error) {
	names, err := h.Files.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil, nil
	}
	var left []string
	for _, name := range names {
		file := path.Join(dir, name)
		info, statErr := h.Files.Lstat(file)
		if errors.Is(statErr, fs.ErrNotExist) {
			continue
		}
		if err = errors.Join(err, statErr); statErr == nil && info.UID == u.UID && name != u.Name && file != u.Home {
			left = append(left, file)
		}
	}
	return left, err
}
