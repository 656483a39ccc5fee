// Package binding shows a directory of a user, such as a working tree, at a place that only root can change, so that a
// container can be given it there.
//
// The way to the directory is walked once, with descriptors, and follows no link that an unprivileged user controls.
// What was opened is then mounted by its descriptor. The user can rename the directory or put a link in its place
// afterwards: the mount still has the directory that was opened.
//
// The mount maps users: the files of the owner belong to one other user ID there, that of root in the container, and
// those of all other users to an ID that no user has. Root in the container therefore can do in the directory what its
// owner can do, and nothing else. In particular it cannot make files of root of the machine.
package binding

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Binding is a directory that is shown at another place.
type Binding struct {
	Source string
	At     string // the other place; root alone may change the directories above it
	Write  bool
	UID    int // the owner of Source; 0 for root, whose directories are shown without a mapping and read-only
	GID    int // the group of what is made there
	As     int // user and group ID that the owner has at the other place
}

// opened opens a directory.
func opened(source string) (*walk.Dir, unix.Stat_t, error) {
	var st unix.Stat_t
	root, err := walk.Open(walk.Options{Safe: true})
	if err != nil {
		return nil, st, err
	}
	defer root.Close()
	dir, err := root.OpenDir(source)
	if errors.Is(err, fs.ErrNotExist) {
		err = diag.Path.Hint(err, "make the directory, or unlock the disk that has it; it is a mount of a guest")
	}
	if err != nil {
		return nil, st, err
	}
	if err := unix.Fstat(dir.FD(), &st); err != nil {
		return nil, st, errors.Join(err, dir.Close())
	}
	return dir, st, nil
}

// open opens the source, and checks its owner.
func (b Binding) open() (*walk.Dir, unix.Stat_t, error) {
	dir, st, err := opened(b.Source)
	if err != nil {
		return nil, st, err
	}
	if int(st.Uid) != b.UID {
		return nil, st, errors.Join(dir.Close(), diag.Exposed.Hint(
			fmt.Errorf("%s belongs to the user ID %d, and not to %d as the mount says", b.Source, st.Uid, b.UID),
			"give it back to its owner, or run corpus dev up again with --mount"))
	}
	return dir, st, nil
}

// Is reports whether the source as it is now is shown at the other place, with the mapping and the mode of b.
func (b Binding) Is() (bool, error) {
	dir, st, err := b.open()
	if err != nil {
		return false, err
	}
	defer dir.Close()
	var at unix.Stat_t
	err = unix.Lstat(b.At, &at)
	if there, err := walk.Found(err); !there || err != nil {
		return false, err
	}
	var system unix.Statfs_t
	if err := unix.Statfs(b.At, &system); err != nil {
		return false, err
	}
	flags := int64(unix.ST_NOSUID | unix.ST_NODEV)
	return at.Dev == st.Dev && at.Ino == st.Ino && int(at.Uid) == b.owner() && system.Flags&flags == flags &&
		(system.Flags&unix.ST_RDONLY == 0) == b.Write, nil
}

// owner returns the user ID that the source has at the other place.
func (b Binding) owner() int {
	if b.UID == 0 {
		return 0
	}
	return b.As
}

// Possible returns an error if the source cannot be shown.
func (b Binding) Possible() error {
	tree, err := b.tree()
	if err != nil {
		return err
	}
	return unix.Close(tree)
}

// Make shows the source at the other place, instead of what is shown there.
func (b Binding) Make() error {
	tree, err := b.tree()
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	if err := Remove(b.At); err != nil {
		return err
	}
	if err := b.place(); err != nil {
		return err
	}
	if err := unix.MoveMount(tree, "", unix.AT_FDCWD, b.At, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mounting %s at %s: %w", b.Source, b.At, err)
	}
	return nil
}

// place makes the directory of the mount. Of other users only the root of the container reaches it, so the permissions
// of the directories above the source still hold for everyone else.
func (b Binding) place() error {
	const searched, closed = 0o711, 0o500
	above := filepath.Dir(b.At)
	for _, dir := range []string{filepath.Dir(above), above, b.At} {
		if err := os.Mkdir(dir, closed); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return errors.Join(os.Chmod(filepath.Dir(above), searched), os.Lchown(above, b.As, b.As))
}

// tree returns a descriptor of a mount of the source that is not at any place yet.
func (b Binding) tree() (int, error) {
	dir, _, err := b.open()
	if err != nil {
		return -1, err
	}
	defer dir.Close()
	tree, err := unix.OpenTree(dir.FD(), "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	if err != nil {
		return -1, fmt.Errorf("mounting %s: %w", b.Source, err)
	}
	if err := b.restrict(tree); err != nil {
		return -1, errors.Join(err, unix.Close(tree))
	}
	return tree, nil
}

// restrict sets the mapping and the mode of a mount.
func (b Binding) restrict(tree int) error {
	attributes := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV, Propagation: unix.MS_PRIVATE}
	if !b.Write {
		attributes.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	if b.UID != 0 {
		users, err := b.users()
		if err != nil {
			return err
		}
		defer users.Close()
		attributes.Attr_set |= unix.MOUNT_ATTR_IDMAP
		attributes.Userns_fd = uint64(users.Fd())
	}
	err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, attributes)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		err = diag.Path.Hint(err, "a mount for a guest takes Linux 5.12 and a file system that maps users (ext4, xfs, "+
			"btrfs, tmpfs); keep the directory on such a one")
	}
	if err != nil {
		return fmt.Errorf("mapping the users of %s: %w", b.Source, err)
	}
	return nil
}

// Remove ends all mounts at a place.
func Remove(at string) error {
	for {
		err := unix.Unmount(at, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, fs.ErrNotExist) {
			return nil // nothing is mounted there
		}
		if err != nil {
			return fmt.Errorf("unmounting %s: %w", at, err)
		}
	}
}

// OwnerOf returns the user ID of the owner of a directory. The way to it follows no link that an unprivileged user
// controls.
func OwnerOf(source string) (int, error) {
	dir, st, err := opened(source)
	if err != nil {
		return 0, err
	}
	return int(st.Uid), dir.Close()
}
