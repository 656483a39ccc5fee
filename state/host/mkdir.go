package host

import (
	"errors"
	"io/fs"
	"path"
	"strings"
)

// MkdirAll makes a directory, and the ones above it that are not there, with mode 0755.
func (h *Host) MkdirAll(dir string) error {
	if _, err := h.Files.Stat(dir); !errors.Is(err, fs.ErrNotExist) || dir == "/" {
		return err
	}
	if err := h.Announce(dir); err != nil {
		return err
	}
	return h.mkdirAll(dir)
}

func (h *Host) mkdirAll(dir string) error {
	if _, err := h.Files.Stat(dir); !errors.Is(err, fs.ErrNotExist) || dir == "/" {
		return err
	}
	if err := h.mkdirAll(path.Dir(dir)); err != nil {
		return err
	}
	if err := h.Files.Mkdir(dir, 0o755); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// WriteText replaces a file's content and makes its directory if need be. Mode and owner stay, or
// are those of any new file.
func (h *Host) WriteText(file, text string) error {
	if err := h.Announce(file); err != nil {
		return err
	}
	if err := h.mkdirAll(path.Dir(file)); err != nil {
		return err
	}
	return h.Files.Write(file, NewFile{Content: strings.NewReader(text), UID: -1, GID: -1})
}
