package records

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// closeState makes the agent's files accessible only to its own user: the state directory and the directories in it get
// mode 0700, and files, with the copies beside the releases, 0600. Earlier agents let every user read the ledger, which
// has the text of failures.
func (rs *Records) closeState() error {
	root, err := rs.OpenSafely()
	if err != nil {
		return err
	}
	defer root.Close()
	if err := closeDir(root, rs.Layout.Inside(rs.Layout.State()), rs.TrustedUsers(), func() error {
		return rs.CheckState(func(string) bool { return false })
	}); err != nil {
		return err
	}
	var errs []error
	dir, err := root.OpenDir(rs.Layout.Inside(rs.Layout.Projects()))
	if err == nil {
		errs = append(errs, closeFiles(dir, rs.isCopy), dir.Close())
	}
	return errors.Join(errs...)
}

// isCopy reports whether a file beside the projects is a copy of one of the agent's own files.
func (rs *Records) isCopy(name string) bool {
	return strings.HasPrefix(name, ".") && (strings.HasSuffix(name, ".json") || name == path.Base(rs.Layout.ConfigCopy()))
}

// closeDir removes the access of other users to a directory, the directories in it and their files, after check has
// accepted the content. It refuses a directory that belongs to another user, since that user may have written the
// content.
func closeDir(root *walk.Root, name string, trusted []uint32, check func() error) error {
	dir, err := root.OpenDir(name)
	if err != nil {
		return nil // it is created, or set aside, when it is needed
	}
	defer dir.Close()
	st, err := dir.Lstat(".")
	if err != nil {
		return err
	}
	if err := checkOwner(name, st.Uid, trusted); err != nil {
		return err
	}
	if err := errors.Join(closeMode(dir, ".", &st, 0o700), dropDefaultACL(dir, ".")); err != nil {
		return err
	}
	if err := closeDirs(dir); err != nil {
		return err
	}
	if err := check(); err != nil {
		return err // before the modes that show it are changed
	}
	return closeFiles(dir, func(string) bool { return true })
}

// checkOwner returns an error if the state directory belongs to a user that is not trusted.
func checkOwner(name string, user uint32, trusted []uint32) error {
	if trusted == nil || slices.Contains(trusted, user) {
		return nil
	}
	return exit.WithCode(exit.Refused,
		diag.Exposed.Hint(fmt.Errorf("%s, where the agent keeps what it trusts, belongs to user %d", name, user),
			"find out why; then remove it, and deploy with --trust-root"))
}

// closeDirs makes the directories in a directory accessible to their owner only.
func closeDirs(dir *walk.Dir) error {
	return eachOf(dir, func(name string, st *unix.Stat_t) error {
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			return nil
		}
		return errors.Join(closeMode(dir, name, st, 0o700), dropDefaultACL(dir, name))
	})
}

// dropDefaultACL removes the default list that a directory inherited from the directory above: with it, whatever the
// agent creates there would have a list that names other users. It ignores directories of another user, as below a
// --root, and those on a read-only filesystem, where nothing is created.
func dropDefaultACL(dir *walk.Dir, name string) error {
	return unlessUnchangeable(dir.DropDefaultACL(name))
}

func unlessUnchangeable(err error) error {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EROFS) {
		return nil
	}
	return err
}

func closeFiles(dir *walk.Dir, chosen func(string) bool) error {
	return eachOf(dir, func(name string, st *unix.Stat_t) error {
		if st.Mode&unix.S_IFMT != unix.S_IFREG || !chosen(name) {
			return nil
		}
		return closeMode(dir, name, st, 0o600)
	})
}

func eachOf(dir *walk.Dir, visit func(name string, st *unix.Stat_t) error) error {
	names, err := dir.ReadDir()
	if err != nil {
		return err
	}
	for _, name := range names {
		st, err := dir.Lstat(name)
		if found, err := walk.Found(err); !found {
			if err != nil {
				return err
			}
			continue
		}
		if err := visit(name, &st); err != nil {
			return err
		}
	}
	return nil
}

// closeMode removes the permissions of group and others from a mode. It ignores files of another user, as below a
// --root, and those on a read-only filesystem.
func closeMode(dir *walk.Dir, name string, st *unix.Stat_t, mode uint32) error {
	if st.Mode&0o077 == 0 {
		return nil
	}
	return unlessUnchangeable(dir.Chmod(name, fs.FileMode(st.Mode&mode)))
}
