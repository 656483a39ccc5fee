package host

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// Files is the filesystem of a host. Paths are absolute paths below the root of the host, as processes in that root
// write them. Errors for a file that does not exist wrap fs.ErrNotExist.
type Files interface {
	// Stat describes the file at a path and follows links; Lstat describes the link itself.
	Stat(path string) (Info, error)
	Lstat(path string) (Info, error)
	Readlink(path string) (string, error)
	// Resolve follows the links at the end of a path, one after the other, and returns the first path that is not a
	// link. The path need not exist.
	Resolve(path string) (string, error)
	ReadFile(path string) ([]byte, error)
	Open(path string) (io.ReadCloser, error)
	// ReadDir returns the sorted names in a directory.
	ReadDir(path string) ([]string, error)

	// Write replaces a file's content atomically: a reader gets the old content or the new. A symbolic link is kept, and
	// its target is replaced. The file keeps its mode, owner, extended attributes and label, except those that f sets.
	// If f.Content fails, nothing is replaced.
	Write(path string, f NewFile) error
	Mkdir(path string, mode fs.FileMode) error
	// Symlink makes path a link to target and replaces a link that is there.
	Symlink(target, path string) error
	Link(old, path string) error
	Rename(old, path string) error
	// Remove deletes a file, link or empty directory; RemoveAll deletes a whole tree, which may be absent.
	Remove(path string) error
	RemoveAll(path string) error
	// Chmod, Chown and Chtimes do not follow a link at the path; Resolve returns its target. A link has an owner, and
	// no mode of its own.
	Chmod(path string, mode fs.FileMode) error
	// Chown leaves an owner or group of -1 unchanged.
	Chown(path string, uid, gid int) error
	// Own calls Chown and then Chmod for the same file, even if its name is given to another file meanwhile. A nil mode
	// restores the mode of the file, with the special bits that Chown removes, if a safe root allows them. A link gets
	// no mode.
	Own(path string, uid, gid int, mode *fs.FileMode) error
	Chtimes(path string, accessed, modified time.Time) error

	// Attributes returns the extended attributes of a path by name, without following a link; nil if the filesystem has
	// none.
	Attributes(path string) (map[string][]byte, error)
	// SetAttributes sets the extended attributes of a file or directory, and removes all others.
	SetAttributes(path string, attributes map[string][]byte) error

	// Beneath returns the files below a directory; see the type Beneath.
	Beneath(dir string) (Beneath, error)

	// CanChown reports whether the owner of files can be changed.
	CanChown() bool
	// Umask returns the umask for a new file or directory for which the state sets no mode.
	Umask() fs.FileMode
}

// Beneath has the files below one directory, which is the root of its paths. It follows no link: a link inside a path,
// or at the end of a path that is opened, is an error (ELOOP). The path of the directory itself is resolved once, and a
// link in it that an unprivileged user controls is refused. Beneath uses the same directory until it is closed, even if
// the directory is renamed.
type Beneath interface {
	Files
	// Free returns the free bytes and the number of files that can be created; -1 for files if the filesystem has no
	// limit.
	Free() (bytes, files int64, err error)
	// SyncAll syncs everything that was written there, including files with NewFile.Unsynced, to the disk.
	SyncAll() error
	Close() error
}

// Anchored returns files for many reads below some directories: the links in the paths of these directories are
// resolved once, and not for each path. Files without that ability are returned unchanged.
func Anchored(files Files, dirs []string) Files {
	if can, ok := files.(interface{ Anchored(dirs []string) Files }); ok {
		return can.Anchored(dirs)
	}
	return files
}

// Info describes a file.
type Info struct {
	Mode     fs.FileMode
	Size     int64
	UID, GID int
	Accessed time.Time
	Modified time.Time
	Changed  time.Time
	Device   uint64
	Inode    uint64
	Links    uint64
}

// FileID identifies a file of the machine.
type FileID struct{ Device, Inode uint64 }

// ID returns the identity of the file, which does not depend on its path.
func (i Info) ID() FileID { return FileID{i.Device, i.Inode} }

// IsDir reports whether it is a directory.
func (i Info) IsDir() bool { return i.Mode.IsDir() }

// IsRegular reports whether it is a regular file.
func (i Info) IsRegular() bool { return i.Mode.IsRegular() }

// IsLink reports whether it is a symbolic link.
func (i Info) IsLink() bool { return i.Mode&fs.ModeSymlink != 0 }

// Closed returns the mode that a file or directory has after root took it over from an unprivileged user, see
// walk.Closed.
func (i Info) Closed() fs.FileMode {
	kind := uint32(0)
	switch {
	case i.UID == 0:
	case i.IsRegular():
		kind = unix.S_IFREG
	case i.IsDir():
		kind = unix.S_IFDIR
	}
	return i.Mode&^fs.ModePerm | fs.FileMode(walk.Closed(walk.RawMode(i.Mode)|kind))&fs.ModePerm
}

// NewFile describes the new content and attributes of a file.
type NewFile struct {
	Content io.Reader
	Mode    *fs.FileMode // nil keeps the mode, or takes 0644 less the umask for a new file
	UID     int          // -1 keeps the owner
	GID     int          // -1 keeps the group
	// ReplaceLink replaces a symbolic link itself, not its target.
	ReplaceLink bool
	// Restored is true if the file is restored from a backup, with its former mode.
	Restored bool
	// Unsynced leaves the sync of the file to Beneath.SyncAll, which the caller calls before it gives the file its
	// final name.
	Unsynced bool
}

// MkdirAll makes a directory, and the ones above it that do not exist, with mode 0755.
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

// WriteText replaces the content of a file, and creates its directory if necessary. It keeps the mode and the owner; a
// new file gets the default ones.
func (h *Host) WriteText(file, text string) error {
	if err := h.Announce(file); err != nil {
		return err
	}
	if err := h.mkdirAll(path.Dir(file)); err != nil {
		return err
	}
	return h.Files.Write(file, NewFile{Content: strings.NewReader(text), UID: -1, GID: -1})
}
