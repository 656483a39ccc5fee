package walk

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// Files returns the files below a directory as an fs.FS. Links are followed only inside the directory. Opening never
// blocks on a named pipe, and only files and directories are opened.
func Files(dir string) fs.FS { return files(dir) }

type files string

// Open implements fs.FS.
func (dir files) Open(name string) (fs.File, error) {
	root, err := OpenTree(string(dir))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.OpenFile(name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: name, Err: ErrNotFile}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// ErrNotFile is the error for something that is neither a file nor a directory.
var ErrNotFile = errors.New("neither a file nor a directory")
