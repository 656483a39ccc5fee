// Package walk opens files by directory descriptors, so that the meaning of a path cannot change between checking it
// and using it.
//
// A Root is a directory that serves as "/". Paths are walked inside the root: links and ".." never lead out of it, and
// an absolute link starts at the root again. On Linux 5.6 and newer the kernel walks that way (openat2(2)). Elsewhere
// (older kernels, seccomp filters that refuse the call, emulators that lack it) a Root walks component by component and
// never follows a link by name. Both ways have the same results.
//
// A safe Root also refuses links that an unprivileged user could have made to reach something that does not belong to
// that user, as systemd's CHASE_SAFE does: see UnsafeError.
//
// Operations that change something use a Dir, an open directory, and a single name in it. They never follow a link
// of that name.
package walk

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Options configure a Root. The zero value is the machine's own "/", with links followed as by the kernel.
type Options struct {
	// Dir is the directory that serves as "/"; "" or "/" is the machine's own.
	Dir string
	// Safe refuses a link that an unprivileged user controls, unless its target belongs to that user.
	Safe bool
	// Members returns the users in a group, including those whose primary group it is. known is false if that cannot be
	// determined. A nil function knows no group. It must not use the Root, and is called from any goroutine.
	Members func(gid uint32) (uids []uint32, known bool)
	// Checked walks component by component even if the kernel supports openat2(2).
	Checked bool
}

// fileID identifies a directory.
type fileID struct{ dev, ino uint64 }

func idOf(fd int) (fileID, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	return fileID{uint64(st.Dev), st.Ino}, err //nolint:unconvert // it has other types elsewhere
}

// Root is a directory that serves as "/". It is safe for concurrent use.
type Root struct {
	dir  *os.File
	name string // path of the directory on the machine, without links

	machine  bool // the machine's own "/": plain open(2) resolves its paths
	safe     bool
	noLinks  bool // no link is followed: see Beneath
	steady   bool // no link that an unprivileged user controls is followed, wherever it leads: see ByName
	kernel   bool // openat2(2) works
	self     int  // the effective user, who is trusted beside root
	trusted  int  // another trusted user, or 0: see As
	members  func(gid uint32) (uids []uint32, known bool)
	anchors  []*anchor // see Anchored
	top      fileID    // the directory that is "/" for the program; this root may be a part of it
	base     string    // the name of that directory on the machine
	patience *patience
	collect  func([]controller) // called with the controllers of a link that is followed: see Source; nil refuses them
}

// Open opens a root. The caller must close it.
func Open(o Options) (*Root, error) {
	machine := o.Dir == "" || o.Dir == "/"
	name := o.Dir
	if machine {
		name = "/"
	}
	dir, err := os.OpenFile(name, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	r := &Root{dir: dir, machine: machine, safe: o.Safe, self: os.Geteuid(), members: o.Members, patience: &patience{}}
	r.kernel = !o.Checked && r.asksKernel()
	if r.name, err = os.Readlink(Handle(int(dir.Fd()))); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	r.base = r.name
	if r.top, err = idOf(int(dir.Fd())); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return r, nil
}

// Close closes the root. Directories and files that were opened through it stay open.
func (r *Root) Close() error { return r.dir.Close() }

// Name returns the path of the root's directory on the machine, without links.
func (r *Root) Name() string { return r.name }

// Openat opens a path with the flags of open(2) and returns the descriptor, or the kernel's error. Links are followed,
// including the last one unless flags has O_NOFOLLOW. It makes no files; see Dir.Create.
func (r *Root) Openat(path string, flags int) (fd int, err error) {
	if err := wellFormed(path); err != nil {
		return -1, err
	}
	return r.pastLease(path, flags|unix.O_CLOEXEC)
}

func (r *Root) openat(path string, flags int) (fd int, err error) {
	if fd, done, err := r.openAnchored(path, flags); done {
		return fd, err
	}
	switch {
	case r.safe:
		return r.openSafely(path, flags)
	case r.noLinks && r.kernel:
		return r.openat2(path, flags, unix.RESOLVE_NO_SYMLINKS)
	case r.noLinks:
		return r.openChecked(path, flags)
	case r.machine:
		return RetryOpen(func() (int, error) { return unix.Open(path, flags, 0) })
	case r.kernel:
		fd, err := r.openat2(path, flags, 0)
		if !errors.Is(err, unix.EAGAIN) {
			return fd, err
		}
		// The kernel gives up while another process keeps renaming; the checked walk does not.
	}
	return r.openChecked(path, flags)
}

// OpenFile is like Openat with an *os.File as the result; errors contain the path.
func (r *Root) OpenFile(path string, flags int) (*os.File, error) {
	fd, err := r.Openat(path, flags)
	if err != nil {
		return nil, pathError("open", path, err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

// OpenDir opens a directory. The caller must close it.
func (r *Root) OpenDir(path string) (*Dir, error) {
	fd, err := r.Openat(path, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return nil, pathError("open", path, err)
	}
	return newDir(r, fd, path), nil
}

// Parent opens the directory of a path and returns the last name in it, which need not exist and is not followed. If a
// path has no last name ("/", "a/.."), the name is ".". The caller must close the directory.
func (r *Root) Parent(path string) (*Dir, string, error) {
	way, name, err := Split(path)
	if err != nil {
		return nil, "", pathError("open", path, err)
	}
	d, err := r.OpenDir(way)
	return d, name, err
}

// Split splits an absolute path into the way to a directory and the name in it. It simplifies nothing, since a/../b is
// not b if a is a link. If the path ends in dots it has no last name, so the whole path is the way and the name
// is ".".
func Split(path string) (way, name string, err error) {
	if err := wellFormed(path); err != nil {
		return "", "", err
	}
	path = "/" + strings.Trim(path, "/")
	i := strings.LastIndexByte(path, '/')
	way, name = path[:i+1], path[i+1:]
	if name == "" || name == "." || name == ".." {
		return path, ".", nil
	}
	return way, name, nil
}

// ErrRelative is the error for a path that does not start at the root.
var ErrRelative = errors.New("not an absolute path")

func wellFormed(path string) error {
	switch {
	case !strings.HasPrefix(path, "/"):
		return ErrRelative
	case strings.ContainsRune(path, 0):
		return unix.EINVAL
	case len(path) >= unix.PathMax:
		return unix.ENAMETOOLONG
	}
	return nil
}

func pathError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	var unsafe *UnsafeError
	if errors.As(err, &unsafe) {
		return err
	}
	if errors.Is(err, unix.ELOOP) {
		err = &Loop{Path: path}
	}
	return &fs.PathError{Op: op, Path: Clip(path), Err: err}
}

// longestShown is the number of bytes of a path that a message shows.
const longestShown = 200

// Clip shortens a path for a message. It leaves out the middle of a long one, since users can make very long paths.
func Clip(path string) string {
	if len(path) <= longestShown {
		return path
	}
	const half = (longestShown - len("...")) / 2
	return strings.ToValidUTF8(path[:half], "") + "..." + strings.ToValidUTF8(path[len(path)-half:], "")
}
