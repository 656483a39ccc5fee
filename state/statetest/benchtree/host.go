package benchtree

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Host creates a root for a chroot with the host that the Salt tree for a number of users describes: with the account
// tools of the machine, a package database, the accounts, jobs, and the tree below /srv/salt. It skips the test if
// permissions or programs are missing.
func Host(t testing.TB, users int) (root string) {
	t.Helper()
	root = hosttest.Chroot(t)
	for _, program := range []string{"/bin/sh", "/bin/touch"} {
		if _, err := os.Stat(program); err != nil {
			t.Skipf("this machine has no %s to test with", program)
		}
		hosttest.Install(t, root, program)
	}
	Fill(t, root, users)
	return root
}

// Program returns a session on a host of Host, and the compiled program of its tree.
func Program(t testing.TB, h *host.Host) (*session.Session, *compile.Program) {
	t.Helper()
	s := families.New(session.Settings{
		Host: h, ID: "bench", Grains: value.NewMap("id", "bench", "os_family", "Debian", "os", "Debian", "kernel", "Linux"),
		States: []roots.Env{{Name: "base", Dirs: []string{"/srv/salt/states"}}},
		Pillar: []roots.Env{{Name: "base", Dirs: []string{"/srv/salt/pillar"}}},
	})
	matches, err := s.Top(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Program(t.Context(), matches)
	if err != nil {
		t.Fatal(err)
	}
	return s, p
}

// Fill writes the files of Host, without programs, below a root.
func Fill(t testing.TB, root string, users int) {
	t.Helper()
	put := func(path, text string) { hosttest.Put(t, filepath.Join(root, path), text, 0o644) }
	for path, text := range Salt(users) {
		put(filepath.Join("srv/salt", path), text)
	}
	put("var/lib/dpkg/status", dpkgStatus())
	put("usr/bin/apt-get", "")
	put("var/spool/cron/crontabs/root", crontab())
	accounts(t, root, users)
}

// accounts adds the users to the account files, since creating them one by one is slow.
func accounts(t testing.TB, root string, users int) {
	var passwd, group, shadow, plain, games strings.Builder
	passwd.WriteString("root:x:0:0:root:/root:/bin/bash\n")
	shadow.WriteString("root:*:19000:0:99999:7:::\n")
	for _, u := range Users(users) {
		fmt.Fprintf(&passwd, "%s:x:%d:%d:%s:/home/%s:%s\n", u.Name, u.UID, u.UID, u.FullName, u.Name, u.Shell)
		fmt.Fprintf(&shadow, "%s:!:19000:0:99999:7:::\n", u.Name)
		fmt.Fprintf(&group, "%s:x:%d:\n", u.Name, u.UID)
		for _, g := range u.Groups {
			if list := map[string]*strings.Builder{"users": &plain, "games": &games}[g]; list.Len() > 0 {
				list.WriteString("," + u.Name)
			} else {
				list.WriteString(u.Name)
			}
		}
		hosttest.Put(t, filepath.Join(root, "home", u.Name, ".profile"), "", 0o644)
	}
	text := "root:x:0:\nusers:x:100:" + plain.String() + "\ngames:x:60:" + games.String() + "\n" + group.String()
	hosttest.Put(t, filepath.Join(root, "etc/passwd"), passwd.String(), 0o644)
	hosttest.Put(t, filepath.Join(root, "etc/group"), text, 0o644)
	hosttest.Put(t, filepath.Join(root, "etc/shadow"), shadow.String(), 0o600)
}

// dpkgStatus returns the database of a host with 500 packages.
func dpkgStatus() string {
	var b strings.Builder
	names := []string{"coreutils", "sed", "curl", "git", "cron", "procps"}
	for i := range 500 - len(names) {
		names = append(names, fmt.Sprintf("package-%d", i))
	}
	for i, name := range names {
		fmt.Fprintf(&b,
			"Package: %s\nStatus: install ok installed\nPriority: optional\nSection: utils\nInstalled-Size: %d\n"+
				"Maintainer: Somebody <somebody@example.org>\nArchitecture: amd64\nVersion: 1.%d-1\n"+
				"Depends: libc6 (>= 2.34), libselinux1 (>= 3.1)\nDescription: a package\n It has a long description\n"+
				" of several lines.\n\n", name, i, i)
	}
	return b.String()
}

// crontab returns the jobs, since not every machine has crontab(1) to create them.
func crontab() string {
	text := "# Lines below here are managed by Salt, do not edit\n"
	for i := 1; i < 5; i++ {
		text += fmt.Sprintf("# SALT_CRON_IDENTIFIER:job-%d\n%d %d * * * /usr/bin/true job%d\n", i, i*7, i, i)
	}
	return text
}
