// Package owned makes files and directories that belong to a user: a home, its .ssh and the files in
// there.
//
// The directories above such a file may be the user's or the system's. What is made on the way is
// the system's; only the last directory is the user's. A file that is there already keeps its mode
// and owner, since whoever gave it those had a reason.
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

// ErrNoUser is the cause where a file's user is missing; an earlier state of the run may be about to
// make it.
var ErrNoUser = errors.New("there is no such user")

// User finds the user that a file belongs to. The error wraps ErrNoUser where there is none.
func User(h *host.Host, name string) (host.User, error) {
	u, ok, err := h.Accounts.User(name)
	if err == nil && !ok {
		err = diag.WithHint(fmt.Errorf("user %s: %w", name, ErrNoUser),
			"make it in a user.present state that this one requires")
	}
	return u, err
}

// IsDirectory tells whether a path leads to a directory.
func IsDirectory(h *host.Host, p string) (bool, error) {
	info, err := h.Files.Stat(p)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return info.IsDir(), err
}

// Directory makes a directory for a user, and those above it that are missing.
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

// Kept says who may read a new file.
type Kept int

// Private files and directories are their user's alone, public ones everybody's to read.
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

// Write replaces a file of a user's, and makes the directory it lies in. It warns where the file could
// not be given to the user.
func Write(h *host.Host, p, text string, u host.User, kept Kept) (warnings []string, err error) {
	dirMode, mode := kept.modes()
	there, err := IsDirectory(h, path.Dir(p))
	if err == nil && !there {
		err = h.Announce(p)
	}
	if err == nil && !there {
		err = Directory(h, path.Dir(p), dirMode, u)
	}
	if err != nil {
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

// trusted refuses a link that its user has laid to what is somebody else's: a file written there with
// the agent's rights would be a way to another's account.
func trusted(h *host.Host, p string, u host.User) error {
	link, err := h.Files.Lstat(p)
	if err != nil || !link.IsLink() || link.UID == 0 {
		return nil
	}
	if behind, err := h.Files.Stat(p); err == nil && behind.UID == u.UID {
		return nil
	}
	return diag.WithHint(fmt.Errorf("%s is a link of uid %d to what is not %s's", p, link.UID, u.Name),
		"replace the link by what belongs there")
}

// note warns where a file could not be given to its user.
func note(h *host.Host, p string, u host.User) []string {
	info, err := h.Files.Stat(p)
	if err != nil || info.UID == u.UID || h.Files.CanChown() {
		return nil
	}
	return []string{fmt.Sprintf("%s belongs to uid %d and not to %s, since the agent does not run as root",
		p, info.UID, u.Name)}
}
