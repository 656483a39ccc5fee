// Package durable writes files so that a crash or a power failure leaves the old content or the new one,
// never a part of it and never a name without its content.
//
// It writes the content into a temporary file beside the target, syncs the file, renames it over the target and syncs
// the directory. Where the filesystem supports it, a temporary file has no name until it is complete. Otherwise its
// name has a prefix, by which Sweep and SweepAbandoned find and remove the files that a killed process has left.
package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// tempPrefix starts the name of every temporary file of this package.
const tempPrefix = ".corpus-tmp-"

// WriteFile replaces a file's content.
func WriteFile(path string, data []byte, mode fs.FileMode) error {
	return Write(path, mode, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// Write replaces a file's content with the bytes that fill writes. If fill fails, the file is unchanged.
func Write(path string, mode fs.FileMode, fill func(io.Writer) error) error {
	return write(path, mode, fill, true)
}

// WriteSoon is WriteFile for a file that a power failure may lose until Install or Sync has synced it.
// A killed process leaves the old content or the new one, as with WriteFile.
func WriteSoon(path string, data []byte, mode fs.FileMode) error {
	put := func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}
	return write(path, mode, put, false)
}

func write(path string, mode fs.FileMode, fill func(io.Writer) error, sync bool) (err error) {
	f, err := Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := fill(f); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return f.Commit(mode, sync)
}

// Sync syncs a file and its directory.
func Sync(path string) error {
	f, err := walk.OpenFile(path)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("syncing %s: %w", path, err)
	}
	return SyncDir(filepath.Dir(path))
}

// Rename renames a file and syncs the directory of the new name.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(to))
}

// Symlink makes path a symbolic link to target. It replaces an existing link or file.
func Symlink(target, path string) error {
	temp, err := tempLink(target, filepath.Dir(path))
	if err != nil {
		return err
	}
	if err := Rename(temp, path); err != nil {
		_ = os.Remove(temp)
		return err
	}
	return nil
}

// tempLink makes a link with an unused temporary name.
func tempLink(target, dir string) (string, error) {
	for n := os.Getpid(); ; n++ {
		name := filepath.Join(dir, fmt.Sprintf("%slink-%d", tempPrefix, n))
		err := os.Symlink(target, name)
		if !errors.Is(err, fs.ErrExist) {
			return name, err
		}
	}
}

// Remove deletes a file or link and syncs its directory. It is not an error if the name does not exist.
func Remove(path string) error {
	if err := os.Remove(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir syncs a directory. Filesystems that cannot sync directories return EINVAL; they do not need it.
func SyncDir(dir string) error {
	d, err := walk.OpenDir(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) {
		err = nil
	}
	return errors.Join(err, d.Close())
}

// MkdirAll makes a directory and its parents and syncs their directories. The directory gets the mode, and each new
// parent parentMode, regardless of the umask; existing directories keep theirs.
func MkdirAll(dir string, mode fs.FileMode) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := MkdirAll(parent, parentMode); err != nil {
			return err
		}
	}
	switch err := os.Mkdir(dir, mode); {
	case errors.Is(err, fs.ErrExist):
	case err != nil:
		return err
	default:
		if err := os.Chmod(dir, mode); err != nil {
			return err
		}
	}
	return SyncDir(parent)
}

// parentMode is the mode of directories that are made on the way to another one, such as /var/lib below a new root:
// programs of other users have to pass them.
const parentMode = 0o755

// TempDir makes a temporary directory in dir, to be renamed later. Sweep removes it by its name.
func TempDir(dir string) (string, error) { return os.MkdirTemp(dir, tempPrefix) }

// TempFile makes a temporary file in dir. Sweep removes it by its name.
func TempFile(dir string) (*os.File, error) { return os.CreateTemp(dir, tempPrefix) }

// Install renames a finished directory to its final name. It first syncs the filesystem, so that a directory with its
// final name is complete even after a power failure, without syncing each file, and then the files elsewhere that
// belong to it.
func Install(temp, path string, files ...string) error {
	return installer{syncfs: unix.Syncfs, syncDir: SyncDir}.install(temp, path, files...)
}

// installer has the functions with which Install syncs.
type installer struct {
	syncfs  func(fd int) error // syncs the filesystem of an open file
	syncDir func(dir string) error
}

func (i installer) install(temp, path string, files ...string) error {
	d, err := walk.OpenDir(temp)
	if err != nil {
		return err
	}
	if err := errors.Join(i.syncfs(int(d.Fd())), d.Close()); err != nil {
		return fmt.Errorf("syncing %s: %w", path, err)
	}
	for _, file := range files {
		if err := Sync(file); err != nil {
			return err
		}
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	if err := i.syncDir(filepath.Dir(path)); err != nil {
		return errors.Join(err, os.Rename(path, temp)) // the new name might not survive a power failure
	}
	return nil
}
