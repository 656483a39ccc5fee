package walk

import (
	"errors"
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

// Read reads a file; nil and false where it does not exist.
func Read(path string) (data []byte, found bool, err error) {
	data, err = os.ReadFile(path)
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
