package artifacttest

import "encoding/binary"

// Rights are the permissions of the owner, the group and others in an access control list: 4 to read, 2 to write, 1 to
// search or execute.
type Rights struct{ Owner, Group, Other uint16 }

// ACL returns an access control list in the form of the extended attributes system.posix_acl_access and
// system.posix_acl_default: the rights of the owner, the group and others, and those of one more user, which are the
// mask as well.
func ACL(user uint32, its uint16, all Rights) []byte {
	const none = ^uint32(0)
	list := binary.LittleEndian.AppendUint32(nil, 2)
	for _, entry := range []struct {
		tag, rights uint16
		id          uint32
	}{{0x01, all.Owner, none}, {0x02, its, user}, {0x04, all.Group, none}, {0x10, its, none},
		{0x20, all.Other, none}} {
		list = binary.LittleEndian.AppendUint16(list, entry.tag)
		list = binary.LittleEndian.AppendUint16(list, entry.rights)
		list = binary.LittleEndian.AppendUint32(list, entry.id)
	}
	return list
}
