package host

import (
	"errors"
	"io/fs"
	"path"
	"strings"
)

// MkdirAll makes a directory, and the ones above it that are not there, with mode 0755.
func (h *Host) MkdirAll(dir string) error {
	if h.recorder != nil {
		if err := h.recordMissing(dir); err != nil {
			return err
		}
	}
	return h.mkdirAll(dir)
}

// recordMissing records all directories that are to be made, so that they are kept by one wait.
func (h *Host) recordMissing(dir string) error {
	if _, err := h.Files.Lstat(dir); !errors.Is(err, fs.ErrNotExist) || dir == "/" || dir == "." {
		return nil
	}
	if err := h.recordMissing(path.Dir(dir)); err != nil {
		return err
	}
	return h.recorder.Replacing(Subject{KindFile, dir})
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
	if err := h.MkdirAll(path.Dir(file)); err != nil {
		return err
	}
	return h.Files.Write(file, NewFile{Content: strings.NewReader(text), UID: -1, GID: -1})
}
