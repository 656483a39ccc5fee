package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
)

// TestProjectGetsItsUser checks that the programs of a system tree create the user of a project, and that the project's
// files belong to that user.
func TestProjectGetsItsUser(t *testing.T) {
	l := newHookLab(t)
	for _, program := range []string{"/usr/sbin/useradd", "/usr/sbin/groupadd"} {
		if _, err := os.Stat(program); err != nil {
			t.Skipf("the program %s is not installed", program)
		}
		hosttest.Install(t, l.Layout.Root, program)
	}
	for name, text := range map[string]string{
		"etc/passwd": "root:x:0:0:root:/root:/bin/sh\n", "etc/group": "root:x:0:\n", "etc/shadow": "root:*:19000::::::\n",
		"etc/gshadow": "root:*::\n", "etc/login.defs": "UID_MIN 1000\nGID_MIN 1000\nCREATE_HOME no\nUSERGROUPS_ENAB yes\n",
	} {
		path := filepath.Join(l.Layout.Root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(l.Layout.Root, "home"), 0o755); err != nil {
		t.Fatal(err)
	}
	l.publishSalt("1", map[string]string{"00.sls": sets("/srv/projects/myapp/data/uploads/a", "{{ cfg.user }}")})
	l.expect(exit.OK)
	if l.host("/srv/projects/myapp/data/uploads/a") != "myapp-user" {
		t.Errorf("cfg.user is %q", l.host("/srv/projects/myapp/data/uploads/a"))
	}
	if !strings.Contains(l.host("/etc/passwd"), "\nmyapp-user:x:1000:1000:project myapp:/home/myapp-user:/bin/sh") {
		t.Errorf("accounts are\n%s", l.host("/etc/passwd"))
	}
	for path, uid := range map[string]uint32{
		"/srv/projects/myapp/data/uploads/a": 1000, "/srv/projects/myapp/current/version": 1000,
		"/srv/projects/myapp/pillar": 0, "/home/myapp-user/.ssh/id_ed25519": 1000,
	} {
		info, err := os.Stat(l.Layout.Path(path))
		if err != nil {
			t.Error(err)
			continue
		}
		if got := info.Sys().(*syscall.Stat_t).Uid; got != uid {
			t.Errorf("%s belongs to %d, want %d", path, got, uid)
		}
		if strings.HasSuffix(path, "id_ed25519") && info.Mode().Perm() != 0o600 {
			t.Errorf("the key has mode %v", info.Mode())
		}
	}
	key := l.host("/home/myapp-user/.ssh/id_ed25519")
	l.publishSalt("2", map[string]string{"00.sls": sets("/srv/out", "2")})
	l.expect(exit.OK)
	if l.host("/home/myapp-user/.ssh/id_ed25519") != key {
		t.Error("the key was made again")
	}
}
