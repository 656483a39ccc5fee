package host

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

func (t *tree) Lstat(p string) (info Info, err error) {
	var st unix.Stat_t
	err = t.do("lstat", p, func(dir int, name string) error {
		return unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	})
	return infoOf(&st), err
}

func (t *tree) Stat(p string) (Info, error) {
	var st unix.Stat_t
	fd, err := t.openat(p, unix.O_PATH)
	if err == nil {
		err = unix.Fstatat(fd, "", &st, unix.AT_EMPTY_PATH)
		_ = unix.Close(fd)
	}
	return infoOf(&st), t.failed("stat", p, err)
}

func infoOf(st *unix.Stat_t) Info {
	return Info{
		Mode: modeOf(st.Mode), Size: st.Size, UID: int(st.Uid), GID: int(st.Gid), Device: st.Dev, Inode: st.Ino,
		Links:    uint64(st.Nlink), //nolint:unconvert // it is narrower on other architectures
		Accessed: time.Unix(st.Atim.Unix()), Modified: time.Unix(st.Mtim.Unix()), Changed: time.Unix(st.Ctim.Unix()),
	}
}

func (t *tree) Readlink(p string) (target string, err error) {
	err = t.do("readlink", p, func(dir int, name string) error {
		target, err = walk.Readlinkat(dir, name)
		return err
	})
	return target, err
}

// Resolve follows the links at the end of a path. The last target need not exist.
func (t *tree) Resolve(p string) (string, error) {
	real, err := t.root.Resolve(p)
	return real, t.failed("resolve", p, err)
}

// open opens a file, directory or device for reading. It returns an error for a pipe, which would block until a process
// writes, and for a socket.
func (t *tree) open(p string) (*os.File, Info, error) {
	fd, err := t.openat(p, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if errors.Is(err, unix.ENXIO) { // a socket, or a device without a driver
		if info, unknown := t.Stat(p); unknown == nil && info.Mode.Type() == fs.ModeSocket {
			return nil, info, Unlike(t.whole(p), info, AFile, "")
		}
	}
	if err != nil {
		return nil, Info{}, explain(t.failed("open", p, err))
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		_ = unix.Close(fd)
		return nil, Info{}, t.failed("open", p, err)
	}
	info := infoOf(&st)
	if info.Mode&(fs.ModeNamedPipe|fs.ModeSocket) != 0 {
		_ = unix.Close(fd)
		return nil, info, Unlike(t.whole(p), info, AFile, "")
	}
	return os.NewFile(uintptr(fd), t.whole(p)), info, nil
}

// Leased reports whether an error says that a file cannot be opened because a process holds a lease on it.
func Leased(err error) bool {
	var leased *walk.Leased
	return errors.As(err, &leased)
}

func (t *tree) Open(p string) (io.ReadCloser, error) {
	f, _, err := t.open(p)
	if err != nil {
		return nil, err
	}
	return &opened{File: f, path: t.whole(p), machineErrors: t.machineErrors}, nil
}

// opened is an open file whose read errors are noted as machine errors.
type opened struct {
	*os.File
	path          string
	machineErrors *walk.MachineErrors
}

func (o *opened) Read(p []byte) (int, error) {
	n, err := o.File.Read(p)
	return n, o.machineErrors.Note(o.path, err)
}

// Size returns the size of the file in bytes, with holes; 0 if it is unknown.
func (o *opened) Size() int64 {
	info, err := o.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	return info.Size()
}

func (o *opened) ReadAt(p []byte, off int64) (int, error) {
	n, err := o.File.ReadAt(p, off)
	return n, o.machineErrors.Note(o.path, err)
}

// WriteTo calls Read, so that errors are noted.
func (o *opened) WriteTo(w io.Writer) (int64, error) { return io.Copy(w, struct{ io.Reader }{o}) }

func (t *tree) ReadFile(p string) ([]byte, error) {
	f, info, err := t.open(p)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := info.Readable(t.whole(p)); err != nil {
		return nil, err
	}
	// One byte more than the size, so that the end is found without another buffer. Files of the kernel have the size
	// 0, and some return their content only to a read of all of it at once.
	data := make([]byte, 0, max(info.Size+1, 512))
	for {
		n, err := f.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if errors.Is(err, io.EOF) {
			return data, nil
		}
		if err != nil {
			return data, t.machineErrors.Note(p, err)
		}
		if len(data) > maxRead {
			return nil, tooLarge(t.whole(p))
		}
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
	}
}

// ReadAll reads all of r into memory, up to the limit of Files.ReadFile. name is for the error.
func ReadAll(r io.Reader, name string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxRead+1))
	if err == nil && len(data) > maxRead {
		return nil, tooLarge(name)
	}
	return data, err
}

// Readable returns an error if the file is too large to be read into memory. name is its path, for the error.
func (i Info) Readable(name string) error {
	if i.Size > maxRead {
		return tooLarge(name)
	}
	return nil
}

// maxRead is the size of the largest file that is read into memory. A sparse file of a user can have 100 GB and take no
// space.
const maxRead = 256 << 20

func tooLarge(p string) error {
	return Unsuitable(p, diag.Edit.Hint(fmt.Errorf("%s is larger than %s, and is not read into memory", p,
		diag.Size(maxRead)),
		"look at it with ls -ls: a file may be large and take no room; such a file is not edited or rendered"))
}

func (t *tree) ReadDir(p string) ([]string, error) {
	fd, err := t.openat(p, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, t.failed("readdir", p, err)
	}
	f := os.NewFile(uintptr(fd), t.whole(p))
	defer f.Close()
	names, err := walk.ReadNames(f.Readdirnames)
	if errors.Is(err, walk.ErrEndless) {
		return nil, Unsuitable(t.whole(p), fmt.Errorf("listing %s: %w", t.whole(p), err))
	}
	if err != nil {
		return nil, t.machineErrors.Note(p, fmt.Errorf("listing %s: %w", p, err))
	}
	return names, nil
}

// modeOf converts the kernel's mode bits to Go's; walk.RawMode does the opposite.
func modeOf(raw uint32) fs.FileMode {
	mode := fs.FileMode(raw & 0o777)
	switch raw & unix.S_IFMT {
	case unix.S_IFDIR:
		mode |= fs.ModeDir
	case unix.S_IFLNK:
		mode |= fs.ModeSymlink
	case unix.S_IFIFO:
		mode |= fs.ModeNamedPipe
	case unix.S_IFSOCK:
		mode |= fs.ModeSocket
	case unix.S_IFBLK:
		mode |= fs.ModeDevice
	case unix.S_IFCHR:
		mode |= fs.ModeDevice | fs.ModeCharDevice
	}
	for _, b := range specialBits() {
		if raw&b.raw != 0 {
			mode |= b.mode
		}
	}
	return mode
}

type specialBit struct {
	raw  uint32
	mode fs.FileMode
}

func specialBits() [3]specialBit {
	return [3]specialBit{{unix.S_ISUID, fs.ModeSetuid}, {unix.S_ISGID, fs.ModeSetgid}, {unix.S_ISVTX, fs.ModeSticky}}
}

// beneath is a tree whose root is a directory of another tree.
type beneath struct{ *tree }

// Beneath returns a tree with another root. It shares everything else with t: the recorder, the counters and the cache.
func (t *tree) Beneath(dir string) (Beneath, error) {
	root, err := t.root.Beneath(dir)
	if err != nil {
		return nil, t.machineErrors.Note(dir, err)
	}
	sub := *t
	sub.root, sub.above = root, t.whole(dir)
	sub.temporary = t.temporary || ownTemp(dir)
	sub.changed = func(p string) { t.changed(path.Join(dir, p)) }
	return beneath{&sub}, nil
}

func (b beneath) Free() (bytes, files int64, err error) { return b.root.Free() }

func (b beneath) SyncAll() error {
	fd, err := b.openat("/", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(fd), unix.Close(fd))
}

func (b beneath) Close() error { return b.root.Close() }
