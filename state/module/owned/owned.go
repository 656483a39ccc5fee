// Package owned creates files and directories that belong to a user, such as a home directory, its .ssh and the
// files in it.
//
// Missing parents of such a directory belong to the account of the agent; only the directory itself belongs to the
// user. An existing file keeps its mode and owner.
package owned

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// ErrNoUser is wrapped by the error for a missing user. An earlier state of the run may create that user.
var ErrNoUser = errors.New("there is no such user")

// User returns the user of a file. If the user does not exist, the error wraps ErrNoUser.
func User(h *host.Host, name string) (host.User, error) {
	u, ok, err := h.Accounts.User(name)
	if err == nil && !ok {
		err = diag.Prerequisite.Hint(fmt.Errorf("user %s: %w", name, ErrNoUser),
			"make it in a user.present state that this one requires")
	}
	return u, err
}

// IsDirectory reports whether a path leads to a directory.
func IsDirectory(h *host.Host, p string) (bool, error) {
	info, err := h.Files.Stat(p)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return info.IsDir(), err
}

// Directory creates a directory for a user, with its missing parents.
func Directory(h *host.Host, p string, mode fs.FileMode, u host.User) error {
	if err := parents(h, path.Dir(p)); err != nil {
		return err
	}
	if err := h.Files.Mkdir(p, mode); err != nil {
		return err
	}
	if !h.Files.CanChown() {
		return nil
	}
	return h.Files.Chown(p, u.UID, u.GID)
}

func parents(h *host.Host, p string) error {
	there, err := IsDirectory(h, p)
	if err != nil || there {
		return err
	}
	if err := parents(h, path.Dir(p)); err != nil {
		return err
	}
	return h.Files.Mkdir(p, 0o755)
}

// Kept determines who may read a new file and its directory.
type Kept int

// Private files and directories are accessible to their user only. Public ones are readable by everyone.
const (
	Private Kept = iota
	Public
)

func (k Kept) modes() (dir, file fs.FileMode) {
	if k == Private {
		return 0o700, 0o600
	}
	return 0o755, 0o644
}

// Write replaces a file of a user and creates its directory. It returns a warning if it could not change the
// owner.
func Write(h *host.Host, p, text string, u host.User, kept Kept) (warnings []string, err error) {
	dirMode, mode := kept.modes()
	if err := madeAbove(h, p, dirMode, u); err != nil {
		return nil, err
	}
	for _, place := range []string{path.Dir(p), p} {
		if err := trusted(h, place, u); err != nil {
			return nil, err
		}
	}
	f := host.NewFile{Content: strings.NewReader(text), UID: -1, GID: -1}
	if _, err := h.Files.Stat(p); errors.Is(err, fs.ErrNotExist) {
		f.Mode, f.UID, f.GID = &mode, u.UID, u.GID
	}
	if err := h.Files.Write(p, f); err != nil {
		return nil, err
	}
	return note(h, p, u), nil
}

// madeAbove creates the directory of a file if there is none.
func madeAbove(h *host.Host, p string, mode fs.FileMode, u host.User) error {
	there, err := IsDirectory(h, path.Dir(p))
	if err != nil || there {
		return err
	}
	if err := h.Announce(p); err != nil {
		return err
	}
	return Directory(h, path.Dir(p), mode, u)
}

// trusted returns an error if a path is a link that is not root's and does not lead to a file of the user: writing
// there with the agent's rights would let a user change the files of another account.
func trusted(h *host.Host, p string, u host.User) error {
	link, err := h.Files.Lstat(p)
	if err != nil || !link.IsLink() || link.UID == 0 {
		return nil
	}
	if behind, err := h.Files.Stat(p); err == nil && behind.UID == u.UID {
		return nil
	}
	return diag.Exposed.Hint(fmt.Errorf("%s is a link of uid %d to what is not %s's", p, link.UID, u.Name),
		"replace the link by what belongs there")
}

// note returns a warning if a file does not belong to its user.
func note(h *host.Host, p string, u host.User) []string {
	info, err := h.Files.Stat(p)
	if err != nil || info.UID == u.UID || h.Files.CanChown() {
		return nil
	}
	return []string{fmt.Sprintf("%s belongs to uid %d and not to %s, since the agent does not run as root",
		p, info.UID, u.Name)}
}
