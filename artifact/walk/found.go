package walk

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Found reports whether a file exists, from the error of opening or describing it. Only fs.ErrNotExist means that it
// does not exist; any other error is returned.
func Found(err error) (bool, error) {
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Nowhere reports whether an error means that a path's links lead nowhere. An I/O error does not mean that: the target
// may be found in the next run.
func Nowhere(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENOTDIR)
}

// Exists reports whether a path leads to a file or directory. It follows links.
func Exists(path string) (bool, error) {
	_, err := os.Stat(path)
	return Found(err)
}

// Named reports whether a path itself exists, even if it is a dangling link.
func Named(path string) (bool, error) {
	_, err := os.Lstat(path)
	return Found(err)
}

// Target returns the target of a path that is itself a link; "" for any other path, and for none.
func Target(path string) (string, error) {
	target, err := os.Readlink(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EINVAL) {
		return "", nil
	}
	return target, err
}

// Directory reports whether a path leads to a directory.
func Directory(path string) (bool, error) {
	info, err := os.Stat(path)
	found, err := Found(err)
	return found && info.IsDir(), err
}

// Misplaced reports whether a path that should be a directory is a file, a named pipe, or a link that does not lead to
// a directory.
func Misplaced(path string) bool {
	info, err := os.Stat(path)
	if err == nil {
		return !info.IsDir()
	}
	named, unread := Named(path)
	return unread == nil && named && Nowhere(err)
}

// TypeName describes a type of file with an article, such as "a named pipe".
func TypeName(of fs.FileMode) string {
	kind := map[fs.FileMode]string{0: "a regular file", fs.ModeDir: "a directory", fs.ModeSymlink: "a symbolic link",
		fs.ModeNamedPipe: "a named pipe", fs.ModeSocket: "a socket"}[of]
	return cmp.Or(kind, "a device")
}

// ErrNoFile is the error for reading something other than a regular file: a directory, a named pipe, or a loop of
// links.
var ErrNoFile = errors.New("it is not a regular file")

// OpenFile opens a regular file for reading. It does not block: a named pipe is an error.
func OpenFile(path string) (*os.File, error) {
	return Regular(os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0))
}

// Regular closes an opened file and returns an error unless it is a regular file. The caller passes the results of an
// open with O_NONBLOCK.
func Regular(f *os.File, err error) (*os.File, error) {
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENXIO) { // a loop of links, a socket
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

// ReadFile reads a file, which OpenFile opens.
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

// OpenDir opens a directory. For anything else, such as a named pipe, it fails with ENOTDIR without blocking.
func OpenDir(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY, 0)
}

// OpenTree is like os.OpenRoot, but does not block on a named pipe.
func OpenTree(path string) (*os.Root, error) {
	return os.OpenRoot(path + "/.")
}

// Read reads a file. found is false if it does not exist.
func Read(path string) (data []byte, found bool, err error) {
	data, err = ReadFile(path)
	found, err = Found(err)
	return data, found, err
}

// Glob lists the paths that match a pattern, sorted. Unlike filepath.Glob it returns an error for directories that
// cannot be read. A directory that does not exist contains nothing.
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

// matching lists the names of one directory that match a pattern.
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
		if ok, _ := filepath.Match(pattern, e.Name()); ok { // the pattern was checked above
			all = append(all, filepath.Join(dir, e.Name()))
		}
	}
	return all, nil
}
