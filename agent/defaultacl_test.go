package agent_test

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/agent/exit"
)

// defaultACL returns a default access control list that gives a user all rights on whatever is made in a directory.
func defaultACL(user uint32) []byte {
	list := binary.LittleEndian.AppendUint32(nil, 2)
	for _, entry := range []struct {
		tag, rights uint16
		id          uint32
	}{{0x01, 7, ^uint32(0)}, {0x02, 7, user}, {0x04, 7, ^uint32(0)}, {0x10, 7, ^uint32(0)}, {0x20, 7, ^uint32(0)}} {
		list = binary.LittleEndian.AppendUint16(list, entry.tag)
		list = binary.LittleEndian.AppendUint16(list, entry.rights)
		list = binary.LittleEndian.AppendUint32(list, entry.id)
	}
	return list
}

// TestDefaultACLGivesNoRightsOnTheState has a default access control list above the state directory. In a file with a
// list, the bits of the group bound the rights of all users that the list names.
func TestDefaultACLGivesNoRightsOnTheState(t *testing.T) {
	l := newLab(t)
	above := filepath.Dir(l.Layout.State())
	must(t, os.MkdirAll(above, 0o755))
	err := unix.Setxattr(above, "system.posix_acl_default", defaultACL(projectUser), 0)
	if errors.Is(err, unix.ENOTSUP) {
		t.Skip("this file system has no access control lists")
	}
	must(t, err)
	l.Config.UploadReports = true
	l.publishBase("1")
	for _, version := range []string{"1", "2"} {
		l.publish(version)
		l.expect(exit.OK)
	}
	inherited := 0
	must(t, filepath.WalkDir(l.Layout.State(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink != 0 {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if n, err := unix.Getxattr(path, "system.posix_acl_access", nil); err == nil && n > 0 {
			inherited++
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return nil
	}))
	if inherited == 0 {
		t.Error("no file has an inherited list")
	}
}
