package agent_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
)

// TestDefaultACLGivesNoRightsOnTheState has a default access control list above the state directory. In a file with a
// list, the bits of the group bound the rights of all users that the list names.
func TestDefaultACLGivesNoRightsOnTheState(t *testing.T) {
	l := newLab(t)
	above := filepath.Dir(l.Layout.State())
	must(t, os.MkdirAll(above, 0o755))
	list := artifacttest.ACL(projectUser, 7, artifacttest.Rights{Owner: 7, Group: 7, Other: 7})
	err := unix.Setxattr(above, "system.posix_acl_default", list, 0)
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
