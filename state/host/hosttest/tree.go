// Package hosttest creates hosts for tests.
//
// Accounts and crontabs belong to a whole system, so each test needs its own. Tree writes the files of a small system
// into a directory. Chroot also copies the real tools of the machine into it, for tests that run as root.
package hosttest

import (
	"os"
	"path/filepath"
	"testing"
)

// Tree writes the account files of a small system below root: root, a daemon, and a user alice in the
// groups alice, adm and users.
func Tree(t testing.TB, root string) {
	t.Helper()
	for path, text := range map[string]string{
		"etc/passwd": "root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n" +
			"alice:x:1000:1000:Alice A,12,34,56,staff,more:/home/alice:/bin/sh\n",
		"etc/group":           "root:x:0:\ndaemon:x:1:\nadm:x:4:alice\nusers:x:100:alice\ngames:x:60:\nalice:x:1000:\n",
		"etc/nsswitch.conf":   "passwd: files\ngroup: files\n",
		"etc/default/useradd": "SHELL=/bin/sh\n",
		"etc/login.defs": "MAIL_DIR /var/mail\nPASS_MAX_DAYS 99999\nPASS_MIN_DAYS 0\nPASS_WARN_AGE 7\nUID_MIN 1000\n" +
			"UID_MAX 60000\n" +
			"GID_MIN 1000\nGID_MAX 60000\nUSERGROUPS_ENAB yes\nENCRYPT_METHOD SHA512\nUMASK 022\n",
	} {
		Put(t, filepath.Join(root, path), text, 0o644)
	}
	Put(t, filepath.Join(root, "etc/shadow"),
		"root:*:19000:0:99999:7:::\ndaemon:*:19000:0:99999:7:::\nalice:$6$abc$def:19000:0:99999:7:::\n", 0o600)
	Put(t, filepath.Join(root, "etc/gshadow"),
		"root:*::\ndaemon:*::\nadm:*::alice\nusers:*::alice\ngames:*::\nalice:!::\n", 0o600)
	for _, dir := range []string{"home/alice", "root", "tmp", "var/spool/cron/crontabs", "var/mail"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// Put writes a file and the directories above it.
func Put(t testing.TB, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}
