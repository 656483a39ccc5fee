package walk

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Found takes the error of a call that looked for something and says whether it is there. Only "does not exist"
// means that it is absent; any other error says nothing about that, and is returned.
func Found(err error) (bool, error) {
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Nowhere reports whether an error of following a name is about where its links lead. An error of the
// disk is not: what it hides may be there at the next run.
func Nowhere(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENOTDIR)
}

// Exists reports whether a path leads to something, links followed.
func Exists(path string) (bool, error) {
	_, err := os.Stat(path)
	return Found(err)
}

// Named reports whether a path itself exists, be it a link that leads nowhere.
func Named(path string) (bool, error) {
	_, err := os.Lstat(path)
	return Found(err)
}

// Directory reports whether a path leads to a directory.
func Directory(path string) (bool, error) {
	info, err := os.Stat(path)
	found, err := Found(err)
	return found && info.IsDir(), err
}

// Misplaced reports whether something else stands in the place of a directory: a file, a pipe, or a link that leads to no
// directory.
func Misplaced(path string) bool {
	info, err := os.Stat(path)
	if err == nil {
		return !info.IsDir()
	}
	named, unread := Named(path)
	return unread == nil && named && Nowhere(err)
}

// ErrNoFile is the error of reading what is no regular file: a directory, a pipe, or a link that leads round in a circle.
var ErrNoFile = errors.New("it is no regular file")

// OpenFile opens a regular file for reading, and waits for no other process: a pipe in its place is an error.
func OpenFile(path string) (*os.File, error) {
	return Regular(os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0))
}

// Regular refuses what was opened and is no regular file, and closes it. The caller passes on what an open with O_NONBLOCK
// returned.
func Regular(f *os.File, err error) (*os.File, error) {
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENXIO) { // a circle, a socket
		return nil, fmt.Errorf("%w: %w", ErrNoFile, err)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: f.Name(), Err: ErrNoFile}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// ReadFile reads a file that OpenFile opens.
func ReadFile(path string) ([]byte, error) {
	f, err := OpenFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var b bytes.Buffer
	if info, err := f.Stat(); err == nil {
		b.Grow(int(info.Size()) + bytes.MinRead)
	}
	_, err = b.ReadFrom(f)
	return b.Bytes(), err
}

// OpenDir opens a directory; for anything else, such as a pipe, it is ENOTDIR at once.
func OpenDir(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY, 0)
}

// OpenTree is os.OpenRoot that waits for no pipe in the place of the directory.
func OpenTree(path string) (*os.Root, error) {
	return os.OpenRoot(path + "/.")
}

// Read reads a file; nil and false where it does not exist.
func Read(path string) (data []byte, found bool, err error) {
	data, err = ReadFile(path)
	found, err = Found(err)
	return data, found, err
}

// Glob lists the paths that fit a pattern, sorted, as filepath.Glob does, which keeps silent about directories that
// cannot be read. A directory that does not exist holds nothing.
func Glob(pattern string) ([]string, error) {
	if !strings.ContainsAny(pattern, `*?[\`) {
		found, err := Named(pattern)
		if err != nil || !found {
			return nil, err
		}
		return []string{pattern}, nil
	}
	dir, last := filepath.Split(pattern)
	dirs, err := Glob(filepath.Clean(dir))
	if err != nil {
		return nil, err
	}
	var all []string
	for _, dir := range dirs {
		names, err := matching(dir, last)
		if err != nil {
			return nil, err
		}
		all = append(all, names...)
	}
	return all, nil
}

// matching lists what fits a pattern in one directory.
func matching(dir, pattern string) ([]string, error) {
	if _, err := filepath.Match(pattern, ""); err != nil {
		return nil, err
	}
	is, err := Directory(dir)
	if err != nil || !is {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if found, err := Found(err); err != nil || !found {
		return nil, err
	}
	var all []string
	for _, e := range entries {
		if ok, _ := filepath.Match(pattern, e.Name()); ok { // the pattern was looked at above
			all = append(all, filepath.Join(dir, e.Name()))
		}
	}
	return all, nil
}
