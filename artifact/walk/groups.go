package walk

import (
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// groupOf returns a group that may write to an open file or directory, which st describes. A group counts as another
// user who can write, whether or not it has members: a process can also get a group from a unit (Group=,
// SupplementaryGroups=), a setgid program or the group's password, and keeps it when its user is no longer a member.
// Two groups are left out, both only if no other user is in them:
//
//   - the group of an unprivileged owner, who is in it: other users have it because the owner shares with them.
//     If members are not known (Options.Members), it is the group with the owner's number.
//   - staff, below /usr/local: see isStaffs.
func (r *Root) groupOf(fd int, gid uint32, st *unix.Stat_t) []controller {
	members, known := []uint32(nil), false
	if r.members != nil {
		members, known = r.members(gid)
	}
	if !known {
		if gid == st.Uid {
			return nil
		}
		return []controller{{kind: 'g', id: gid}}
	}
	others := slices.DeleteFunc(slices.Clone(members), func(uid uint32) bool {
		return uid == st.Uid || !r.unprivileged(uid)
	})
	if len(others) == 0 && (st.Uid != 0 && slices.Contains(members, st.Uid) || r.isStaffs(fd, gid, st)) {
		return nil
	}
	return []controller{{kind: 'g', id: gid, members: others}}
}

// staff is a group of Debian with a fixed number.
const staff = 50

// isStaffs reports whether a file of root is below /usr/local and the group is staff. Debian allows that group to write
// there, and root's PATH begins there, so a process with the group has the rights of root in any case. The group has no
// members unless an administrator adds some.
func (r *Root) isStaffs(fd int, gid uint32, st *unix.Stat_t) bool {
	if gid != staff || st.Uid != 0 {
		return false
	}
	at, err := os.Readlink(Handle(fd))
	local := path.Join(r.base, "usr/local")
	return err == nil && (at == local || strings.HasPrefix(at, local+"/"))
}
