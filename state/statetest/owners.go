package statetest

import (
	"io/fs"
	"path"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// owners implements host.Files. It records the owners of files by inode instead of setting them, so that an ordinary
// user can run tests that need root. Files whose owner was not set belong to root.
type owners struct {
	host.Files
	of       map[uint64]owner
	ordinary *bool // the agent is an ordinary user and cannot change owners
}

type owner struct{ uid, gid int }

// CanChown reports whether the agent is root.
func (o *owners) CanChown() bool { return !*o.ordinary }

func (o *owners) as(info host.Info, err error) (host.Info, error) {
	ids := o.of[info.Inode]
	info.UID, info.GID = ids.uid, ids.gid
	return info, err
}

func (o *owners) Stat(p string) (host.Info, error)  { return o.as(o.Files.Stat(p)) }
func (o *owners) Lstat(p string) (host.Info, error) { return o.as(o.Files.Lstat(p)) }

// created records the owner of a new file: root, and the group of a directory with the setgid bit.
func (o *owners) created(p string) error {
	ids := owner{}
	if dir, err := o.Stat(path.Dir(p)); err == nil && dir.Mode&fs.ModeSetgid != 0 {
		ids.gid = dir.GID
	}
	info, err := o.Files.Lstat(p)
	o.of[info.Inode] = ids
	return err
}

func (o *owners) Write(p string, f host.NewFile) error {
	old, missing := o.Stat(p)
	plain := f
	plain.UID, plain.GID = -1, -1
	if err := o.Files.Write(p, plain); err != nil {
		return err
	}
	info, err := o.Files.Stat(p)
	if err != nil {
		return err
	}
	if missing != nil || f.ReplaceLink {
		if err := o.created(p); err != nil {
			return err
		}
	} else {
		o.of[info.Inode] = owner{old.UID, old.GID}
	}
	if !*o.ordinary {
		o.give(info, f.UID, f.GID)
	}
	return nil
}

func (o *owners) give(info host.Info, uid, gid int) {
	ids := o.of[info.Inode]
	if uid >= 0 {
		ids.uid = uid
	}
	if gid >= 0 {
		ids.gid = gid
	}
	o.of[info.Inode] = ids
}

func (o *owners) Mkdir(p string, mode fs.FileMode) error {
	if err := o.Files.Mkdir(p, mode); err != nil {
		return err
	}
	return o.created(p)
}

func (o *owners) Symlink(target, p string) error {
	if err := o.Files.Symlink(target, p); err != nil {
		return err
	}
	return o.created(p)
}

func (o *owners) Chown(p string, uid, gid int) error {
	info, err := o.Files.Lstat(p)
	if err != nil {
		return err
	}
	if *o.ordinary {
		return &fs.PathError{Op: "chown", Path: p, Err: fs.ErrPermission}
	}
	o.give(info, uid, gid)
	return nil
}

// Own calls Chown and Chmod.
func (o *owners) Own(p string, uid, gid int, mode *fs.FileMode) error {
	if uid >= 0 || gid >= 0 {
		if err := o.Chown(p, uid, gid); err != nil {
			return err
		}
	}
	info, err := o.Lstat(p)
	if err != nil || mode == nil || info.IsLink() {
		return err
	}
	return o.Chmod(p, *mode)
}

// Beneath returns the files below a directory, with the same recorded owners.
func (o *owners) Beneath(dir string) (host.Beneath, error) {
	below, err := o.Files.Beneath(dir)
	if err != nil {
		return nil, err
	}
	return &ownersBeneath{owners{below, o.of, o.ordinary}, below}, nil
}

type ownersBeneath struct {
	owners
	below host.Beneath
}

func (o *ownersBeneath) Free() (bytes, files int64, err error) { return o.below.Free() }

func (o *ownersBeneath) SyncAll() error { return o.below.SyncAll() }

func (o *ownersBeneath) Close() error { return o.below.Close() }
