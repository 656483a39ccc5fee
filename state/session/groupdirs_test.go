package session_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
)

// TestDirectoriesThatAGroupMayWrite checks that root's states work in system directories that a group may write to,
// such as /var/log of Ubuntu and /var/mail, whether or not the group has known members. Only links in them are refused,
// since a process with the group could have created them.
func TestDirectoriesThatAGroupMayWrite(t *testing.T) {
	for _, nsswitch := range []string{"passwd: files systemd\ngroup: files systemd\n",
		"passwd: files sss\ngroup: files sss\n"} {
		root := annsHost(t)
		hosttest.Put(t, filepath.Join(root, "etc/nsswitch.conf"), nsswitch, 0o644)
		hosttest.Put(t, filepath.Join(root, "etc/passwd"),
			"root:x:0:0::/root:/bin/sh\nsyslog:x:104:64104::/nonexistent:/usr/sbin/nologin\n", 0o644)
		hosttest.Put(t, filepath.Join(root, "etc/group"), "root:x:0:\nmail:x:64008:\nsyslog:x:64104:\n", 0o644)
		for dir, gid := range map[string]int{"/var/log": 64104, "/var/mail": 64008} {
			at := filepath.Join(root, dir)
			hosttest.Put(t, filepath.Join(at, "old/file"), "old\n", 0o644)
			if err := os.Chown(at, 0, gid); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(at, 0o775|os.ModeSetgid); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("/etc/secret", filepath.Join(at, "link")); err != nil {
				t.Fatal(err)
			}
			sls := `
DIR/app.log: {file.managed: [{contents: x}, {user: root}, {mode: '0640'}]}
DIR/app: {file.directory: [{mode: '0750'}]}
DIR/app/deep/x: {file.managed: [{contents: x}, {makedirs: True}]}
DIR/old/file: {file.append: [{text: new}]}
DIR/other: {file.symlink: [{target: /var/log/app}]}
DIR/old/gone: {file.touch: []}
gone: {file.absent: [{name: DIR/old/gone}]}
DIR/link: {file.append: [{text: through a link}]}
`
			for _, r := range runOn(t, root, strings.ReplaceAll(sls, "DIR", dir), false) {
				refused := strings.HasSuffix(r.Step.ID(), "/link")
				if (r.Outcome == exec.Failed) != refused || refused && !strings.Contains(r.Comment,
					dir+"/link is controlled by group ") {
					t.Errorf("with %q: %s: %v: %s", nsswitch, r.Step.ID(), r.Outcome, r.Comment)
				}
			}
		}
	}
}
