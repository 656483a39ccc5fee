package walk

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// controller is a user, a group or everyone, who can change the meaning of a path.
type controller struct {
	kind    byte // u, g, o
	id      uint32
	members []uint32 // members of a group, as far as they matter; empty if none is known
	at      string   // path that it controls, if known
}

func (c controller) String() string {
	switch c.kind {
	case 'u':
		return fmt.Sprintf("user %d", c.id)
	case 'g':
		return fmt.Sprintf("group %d", c.id)
	}
	return "any user"
}

// controls reports whether the party can write to the file anyway.
func (c controller) controls(st *unix.Stat_t) bool {
	switch c.kind {
	case 'u':
		return st.Uid == c.id
	case 'g':
		return st.Gid == c.id && st.Mode&0o020 != 0 || len(c.members) > 0 &&
			!slices.ContainsFunc(c.members, func(uid uint32) bool { return uid != st.Uid })
	}
	return st.Mode&0o002 != 0 && st.Mode&unix.S_ISVTX == 0
}

// controllers returns the parties that can replace a name in the present directory of the walk.
func (w *walker) controllers() ([]controller, error) {
	var all []controller
	for _, s := range w.way[1:] {
		by, err := w.root.controllers(s.fd)
		if err != nil {
			return nil, err
		}
		all = append(all, at(by, s.name)...)
	}
	top, err := w.root.controllers(w.way[0].fd)
	return append(all, at(top, "/")...), err
}

// controllers returns the parties that control one directory.
func (r *Root) controllers(dir int) (by []controller, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(dir, &st); err != nil {
		return nil, err
	}
	return r.controllersOf(dir, &st)
}

// controllersOf returns the parties that control an open directory or file, described by st: its owner, and those who
// may write to it by its mode or its access control list. The group bits are the mask of such a list, so without them
// the list gives no write permission.
func (r *Root) controllersOf(fd int, st *unix.Stat_t) (by []controller, err error) {
	if r.unprivileged(st.Uid) {
		by = append(by, controller{kind: 'u', id: st.Uid})
	}
	if st.Mode&unix.S_ISVTX != 0 && st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return by, nil
	}
	if st.Mode&0o020 != 0 {
		list, err := readACL(fd, accessACL)
		if err != nil {
			return nil, err
		}
		if list == nil {
			list = []aclEntry{{tag: aclOwnGroup, perm: 2}}
		}
		by = append(by, r.writersOf(fd, list, st)...)
	}
	if st.Mode&0o002 != 0 {
		by = append(by, controller{kind: 'o'})
	}
	return by, nil
}

func (r *Root) unprivileged(uid uint32) bool {
	return uid != 0 && int(uid) != r.self && int(uid) != r.trusted
}
