package walk

import (
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"
)

// The attributes in which a filesystem keeps POSIX access control lists.
const (
	accessACL  = "system.posix_acl_access"  // permissions of a file or directory
	defaultACL = "system.posix_acl_default" // list that new names in a directory inherit
)

// Tags of the entries of a list.
const (
	aclUser       = 0x02
	aclOwnGroup   = 0x04
	aclGroup      = 0x08
	aclMask       = 0x10
	aclVersion    = 2
	aclHeaderSize = 4
	aclEntrySize  = 8
)

type aclEntry struct {
	tag, perm uint16
	id        uint32
}

// readACL reads a list of an open file or directory, which may be opened with O_PATH. It returns nil if there is none.
// The permissions of the entries are limited by the mask of the list.
func readACL(fd int, name string) ([]aclEntry, error) {
	buf := make([]byte, 64<<10) // the kernel's limit for an attribute
	var n int
	err := Retry(func() (err error) {
		n, err = unix.Getxattr(Handle(fd), name, buf)
		return err
	})
	switch {
	// ENOENT is the error without /proc
	case errors.Is(err, unix.ENODATA), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOENT):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return parseACL(buf[:n])
}

func parseACL(raw []byte) ([]aclEntry, error) {
	if len(raw) < aclHeaderSize || binary.LittleEndian.Uint32(raw) != aclVersion ||
		(len(raw)-aclHeaderSize)%aclEntrySize != 0 {
		return nil, unix.EINVAL
	}
	var all []aclEntry
	mask := uint16(7)
	for raw = raw[aclHeaderSize:]; len(raw) > 0; raw = raw[aclEntrySize:] {
		e := aclEntry{binary.LittleEndian.Uint16(raw), binary.LittleEndian.Uint16(raw[2:]),
			binary.LittleEndian.Uint32(raw[4:])}
		if e.tag == aclMask {
			mask = e.perm
		}
		all = append(all, e)
	}
	for i := range all {
		if t := all[i].tag; t == aclUser || t == aclGroup || t == aclOwnGroup {
			all[i].perm &= mask
		}
	}
	return all, nil
}

// writersOf returns the users and groups, in addition to the owner and everyone, to whom an access control list of an
// open file gives write permission.
func (r *Root) writersOf(fd int, list []aclEntry, st *unix.Stat_t) (by []controller) {
	for _, e := range list {
		switch {
		case e.perm&2 == 0:
		case e.tag == aclUser && r.unprivileged(e.id):
			by = append(by, controller{kind: 'u', id: e.id})
		case e.tag == aclOwnGroup && st.Gid != 0:
			by = append(by, r.groupOf(fd, st.Gid, st)...)
		case e.tag == aclGroup && e.id != 0:
			by = append(by, r.groupOf(fd, e.id, st)...)
		}
	}
	return by
}

// inherited returns the users and groups that may write to new names in an open directory because of its default list.
func (r *Root) inherited(dir int, st *unix.Stat_t) ([]controller, error) {
	list, err := readACL(dir, defaultACL)
	return r.writersOf(dir, list, st), err
}

// Granted returns an error, in a safe root, for a directory whose access control lists allow an unprivileged user to
// write to it, or to new names in it.
func (r *Root) Granted(p string) error {
	if !r.safe {
		return nil
	}
	fd, err := r.Openat(p, unix.O_PATH)
	if err != nil {
		return pathError("open", p, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return pathError("open", p, err)
	}
	list, err := readACL(fd, accessACL)
	if err != nil {
		return pathError("getxattr", p, err)
	}
	named := st
	named.Gid = 0 // the list does not apply to the directory's own group
	by := r.writersOf(fd, list, &named)
	if later, err := r.inherited(fd, &named); err != nil {
		return pathError("getxattr", p, err)
	} else if by = append(by, later...); len(by) == 0 {
		return nil
	}
	return &UnsafeError{Path: p, Component: p, By: by[0].String(), Owner: int(st.Uid), Tree: true}
}

// DropACL removes the access control lists of an open file or directory, which may be opened with O_PATH. The
// permissions of its mode remain, with those of the group as the list had them.
func DropACL(fd int) error {
	list, err := readACL(fd, accessACL)
	if err != nil {
		return err
	}
	if list != nil {
		if err := dropAccess(fd, list); err != nil {
			return err
		}
	}
	return dropList(fd, defaultACL)
}

// DropACL is like the function DropACL for a name in the directory. A link has no lists.
func (d *Dir) DropACL(name string) error {
	return d.place("removexattr", name, func(fd int, st *unix.Stat_t) error {
		if st.Mode&unix.S_IFMT == unix.S_IFLNK {
			return nil
		}
		return DropACL(fd)
	})
}

// DropDefaultACL removes the default list of a directory, which is the list that objects created there inherit.
func (d *Dir) DropDefaultACL(name string) error {
	return d.place("removexattr", name, func(fd int, _ *unix.Stat_t) error {
		return dropList(fd, defaultACL)
	})
}

func dropAccess(fd int, list []aclEntry) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	mode := st.Mode & 0o7707 // the group bits are the mask of the list
	for _, e := range list {
		if e.tag == aclOwnGroup {
			mode |= uint32(e.perm) << 3
		}
	}
	if err := unix.Chmod(Handle(fd), mode); err != nil {
		return err
	}
	return dropList(fd, accessACL)
}

// dropList removes a list of an open file or directory if it has one. A read-only filesystem refuses to remove even a
// list that does not exist.
func dropList(fd int, name string) error {
	err := Retry(func() error { _, err := unix.Getxattr(Handle(fd), name, nil); return err })
	if err == nil {
		err = Retry(func() error { return unix.Removexattr(Handle(fd), name) })
	}
	return absentACL(err)
}

func absentACL(err error) error {
	if errors.Is(err, unix.ENODATA) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EACCES) ||
		errors.Is(err, unix.ENOENT) {
		return nil // the error is EACCES for the default list of something other than a directory
	}
	return err
}

// fromUser is an attribute that marks a file that an unprivileged user owned when the agent gave it to another user.
// Its content still comes from that user, so it must not get setuid or setgid bits. A file that replaces it does not
// have the attribute.
const fromUser = "trusted.corpus.from_user"

// TakeOver removes the access control lists that an unprivileged user, who owned an open file or directory, may have
// left on it before it was given to uid. was describes it before that. TakeOver also marks a file with its previous
// owner, see fromUser, and if root is the new owner, removes rights that the user gave to others, see Closed.
func (r *Root) TakeOver(fd int, was *unix.Stat_t, uid int) error {
	kind := was.Mode & unix.S_IFMT
	if uid < 0 || uint32(uid) == was.Uid || !r.unprivileged(was.Uid) || kind == unix.S_IFLNK {
		return nil
	}
	if kind == unix.S_IFREG {
		// Some filesystems and containers cannot store the attribute.
		_ = unix.Setxattr(Handle(fd), fromUser, binary.LittleEndian.AppendUint32(nil, was.Uid), 0)
	}
	if err := DropACL(fd); err != nil || uid != 0 {
		return err
	}
	var is unix.Stat_t
	if err := unix.Fstat(fd, &is); err != nil || Closed(is.Mode) == is.Mode {
		return err
	}
	return unix.Chmod(Handle(fd), Closed(is.Mode)&0o7777)
}

// Closed returns the mode, with the type, of a file that root takes over from an unprivileged user, who chose its mode:
// a file without write permission for the group and for all users, and a directory without write permission for all
// users, unless it has the sticky bit.
func Closed(mode uint32) uint32 {
	switch {
	case mode&unix.S_IFMT == unix.S_IFREG:
		return mode &^ 0o022
	case mode&unix.S_IFMT == unix.S_IFDIR && mode&unix.S_ISVTX == 0:
		return mode &^ 0o002
	}
	return mode
}

// KeepsACL reports whether a file that replaces another one in an open directory, and belongs to uid, may keep the old
// file's access control list. was describes the old file. A list that an unprivileged user may have set, as the owner
// of the old file or of its directory, must not apply to the file of another user.
func (r *Root) KeepsACL(dir int, was *unix.Stat_t, uid int) bool {
	if r.unprivileged(was.Uid) {
		return int(was.Uid) == uid
	}
	by, err := r.controllers(dir)
	return err == nil && len(by) == 0
}

// IsACL reports whether an attribute is an access control list.
func IsACL(attribute string) bool { return attribute == accessACL || attribute == defaultACL }

// IsNote reports whether an attribute is one that this package sets on files, see fromUser.
func IsNote(attribute string) bool { return attribute == fromUser }

// noted returns the previous owner with which an open file is marked.
func noted(fd int) (uid uint32, is bool) {
	var note [4]byte
	n, err := unix.Getxattr(Handle(fd), fromUser, note[:])
	return binary.LittleEndian.Uint32(note[:]), err == nil && n == len(note)
}
