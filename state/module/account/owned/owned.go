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

	"github.com/corpus-agent/corpus-agent/state/host"
)

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

// Write replaces a file of a user's. A new one gets mode 0600, and so does a new directory for it
// 0700.
func Write(h *host.Host, p, text string, u host.User) error {
	there, err := IsDirectory(h, path.Dir(p))
	if err == nil && !there {
		err = Directory(h, path.Dir(p), 0o700, u)
	}
	if err != nil {
		return err
	}
	f := host.NewFile{Content: strings.NewReader(text), UID: -1, GID: -1}
	if _, err := h.Files.Stat(p); errors.Is(err, fs.ErrNotExist) {
		mode := fs.FileMode(0o600)
		f.Mode, f.UID, f.GID = &mode, u.UID, u.GID
	}
	return h.Files.Write(p, f)
}

// Note warns where a file could not be given to its user, or is "".
func Note(h *host.Host, p string, u host.User) string {
	info, err := h.Files.Stat(p)
	if err != nil || info.UID == u.UID || h.Files.CanChown() {
		return ""
	}
	return fmt.Sprintf("%s belongs to uid %d and not to %s, since the agent does not run as root", p, info.UID, u.Name)
}
