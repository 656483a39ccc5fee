package accounts_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
)

// fakeCommands is a fake of the host's commands that records the commands and answers by tool.
type fakeCommands struct {
	commands []host.Command
	answers  map[string]host.Output
}

func (*fakeCommands) Allowed(string) error { return nil }

func (r *fakeCommands) Run(_ context.Context, c host.Command) (host.Output, error) {
	r.commands = append(r.commands, c)
	return r.answers[filepath.Base(c.Argv[0])], nil
}

func (r *fakeCommands) lines() []string {
	var lines []string
	for _, c := range r.commands {
		lines = append(lines, strings.Join(c.Argv, " ")+" <"+c.Stdin)
	}
	return lines
}

// fakeRecorder records the subjects that a run replaces.
type fakeRecorder []string

func (r *fakeRecorder) Kept() error { return nil }

func (r *fakeRecorder) Replacing(s host.Subject) error {
	*r = append(*r, s.String())
	return nil
}

// smallHost creates a host with the files of hosttest.Tree and with fake tools.
func smallHost(t testing.TB, answers map[string]host.Output) (*host.Host, *fakeCommands, *fakeRecorder, string) {
	t.Helper()
	root := t.TempDir()
	hosttest.Tree(t, root)
	for _, name := range []string{"useradd", "usermod", "userdel", "groupadd", "groupmod", "groupdel", "gpasswd", "chage",
		"chpasswd", "passwd", "getent", "crontab"} {
		hosttest.Put(t, filepath.Join(root, "usr/sbin", name), "", 0o755)
	}
	commands, subjects := &fakeCommands{answers: answers}, new(fakeRecorder)
	h, err := machine.New(host.Options{Root: root, Commands: commands, Recorder: subjects})
	if err != nil {
		t.Fatal(err)
	}
	return h, commands, subjects, root
}

func ptr[T any](v T) *T { return &v }

// TestAccountCommands checks the tools that make a change, their input, and the subjects that are recorded first. No
// password is among the words of a command, where every process could read it.
func TestAccountCommands(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		name     string
		change   func(a host.Accounts) error
		commands []string
		subjects []string
	}{
		{"a user", func(a host.Accounts) error { return a.AddUser(ctx, host.NewUser{Name: "bob", CreateHome: true}) },
			[]string{"useradd -m -- bob <"}, []string{"user bob", "group bob", "file /var/mail/bob", "tree /home/bob"}},
		{"a user with all options", func(a host.Accounts) error {
			return a.AddUser(ctx, host.NewUser{Name: "bob", UID: ptr(7), Group: "users", OwnGroup: ptr(false),
				Groups: []string{"adm", "games"}, Gecos: "B",
				Home: "/srv/b", Shell: "/bin/sh", NonUnique: true, System: true, NoLog: true})
		}, []string{"useradd -u 7 -g users -N -G adm,games -c B -d /srv/b -M -s /bin/sh -o -r -l -- bob <"},
			[]string{"user bob", "group bob", "file /var/mail/bob", "group adm", "group games", "tree /srv/b"}},
		{"a change of a user", func(a host.Accounts) error {
			return a.ChangeUser(ctx, "alice", host.UserChange{UID: ptr(8), Group: ptr("adm"), Groups: &[]string{"games"},
				KeepGroups: true, Shell: ptr("/bin/x"), LockedState: ptr(true)})
		}, []string{"usermod -u 8 -g adm -s /bin/x -a -G games -L -- alice <"},
			[]string{"user alice", "group adm", "group alice", "group users", "group games"}},
		{"no change", func(a host.Accounts) error { return a.ChangeUser(ctx, "alice", host.UserChange{}) }, nil, nil},
		{"removal of a user", func(a host.Accounts) error {
			return a.RemoveUser(ctx, "alice", host.UserRemoval{Purge: true, Force: true})
		}, []string{"userdel -r -f -- alice <"}, []string{"user alice", "group alice", "group adm", "group alice",
			"group users", "tree /home/alice", "file /var/mail/alice"}},
		{"removal of a missing user", func(a host.Accounts) error {
			return a.RemoveUser(ctx, "nobody", host.UserRemoval{})
		}, nil, nil},
		{"a password", func(a host.Accounts) error {
			return a.SetShadow(ctx, "alice", host.ShadowChange{Hash: ptr("$6$a$b"), LastChange: ptr(1), Min: ptr(2), Max: ptr(3),
				Warn: ptr(4), Inactive: ptr(5), Expire: ptr(-1)})
		}, []string{"chpasswd -e <alice:$6$a$b\n", "chage -d 1 -m 2 -M 3 -W 4 -I 5 -E -1 -- alice <"},
			[]string{"user alice", "user alice"}},
		{"no password", func(a host.Accounts) error { return a.SetShadow(ctx, "alice", host.ShadowChange{Hash: ptr("")}) },
			[]string{"passwd -d -- alice <"}, []string{"user alice"}},
		{"a group", func(a host.Accounts) error {
			return a.AddGroup(ctx, host.NewGroup{Name: "crew", GID: ptr(9), NonUnique: true, System: true,
				Members: []string{"alice", "root"}})
		}, []string{"groupadd -g 9 -o -r -- crew <", "gpasswd -M alice,root -- crew <"},
			[]string{"group crew", "group crew"}},
		{"a change of a group", func(a host.Accounts) error {
			return a.ChangeGroup(ctx, "adm", host.GroupChange{GID: ptr(9), Add: []string{"root"}, Remove: []string{"alice"}})
		}, []string{"groupmod -g 9 -- adm <", "gpasswd -a root -- adm <", "gpasswd -d alice -- adm <"},
			[]string{"group adm", "group adm", "group adm"}},
		{"removal of a group", func(a host.Accounts) error { return a.RemoveGroup(ctx, "adm") },
			[]string{"groupdel -- adm <"}, []string{"group adm"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, commands, subjects, _ := smallHost(t, nil)
			if err := c.change(h.Accounts); err != nil {
				t.Fatal(err)
			}
			for i := range c.commands {
				c.commands[i] = "/usr/sbin/" + c.commands[i]
			}
			if got := commands.lines(); !reflect.DeepEqual(got, c.commands) {
				t.Errorf("ran %q, want %q", got, c.commands)
			}
			if got := []string(*subjects); !reflect.DeepEqual(got, c.subjects) {
				t.Errorf("recorded %q, want %q", got, c.subjects)
			}
		})
	}
}

// TestBadPasswords checks that a hash with a separator or a line break is refused.
func TestBadPasswords(t *testing.T) {
	h, commands, _, _ := smallHost(t, nil)
	for _, hash := range []string{"a:b", "a\nroot:x", "a\r"} {
		err := h.Accounts.SetShadow(context.Background(), "alice", host.ShadowChange{Hash: &hash})
		if err == nil || strings.Contains(err.Error(), hash) || len(commands.commands) > 0 {
			t.Errorf("%q: %v after %d commands, want a refusal that does not repeat it", hash, err, len(commands.commands))
		}
	}
}

// TestReading checks that accounts are read from the files, and read again after a change through the host.
func TestReading(t *testing.T) {
	h, _, _, root := smallHost(t, nil)
	alice, ok, err := h.Accounts.User("alice")
	if want := (host.User{Name: "alice", Password: "x", UID: 1000, GID: 1000, Gecos: "Alice A,12,34,56,staff,more",
		Home: "/home/alice", Shell: "/bin/sh"}); !ok || err != nil || alice != want {
		t.Errorf("alice is %+v, %v, %v, want %+v", alice, ok, err, want)
	}
	groups, err := h.Accounts.GroupsOf("alice")
	if want := []string{"adm", "alice", "users"}; err != nil || !reflect.DeepEqual(groups, want) {
		t.Errorf("her groups are %v, %v, want %v", groups, err, want)
	}
	shadow, ok, err := h.Accounts.Shadow("alice")
	if want := (host.Shadow{Name: "alice", Hash: "$6$abc$def", LastChange: 19000, Max: 99999, Warn: 7, Inactive: -1,
		Expire: -1}); !ok || err != nil || shadow != want {
		t.Errorf("her shadow is %+v, %v, %v, want %+v", shadow, ok, err, want)
	}
	// A change by another program is not seen; a change by the host's own methods or commands is.
	passwd := "first:x:5:5::/:/bin/sh\nfirst:x:6:6::/:/bin/sh\nsixth:x:5:6::/:/bin/sh\n"
	hosttest.Put(t, filepath.Join(root, "etc/passwd"), passwd, 0o644)
	if _, ok, _ := h.Accounts.User("alice"); !ok {
		t.Error("a file was read again without a change through the host")
	}
	if err := h.Files.Write("/etc/passwd", host.NewFile{Content: strings.NewReader(passwd), UID: -1,
		GID: -1}); err != nil {
		t.Fatal(err)
	}
	if _, ok, _ := h.Accounts.User("alice"); ok {
		t.Error("alice still exists after /etc/passwd was replaced")
	}
	if u, _, _ := h.Accounts.User("first"); u.UID != 5 {
		t.Errorf("of two lines for a name the second is used: %+v", u)
	}
	if u, _, _ := h.Accounts.UserByID(5); u.Name != "first" {
		t.Errorf("of two lines for an ID the second is used: %+v", u)
	}
}

// TestOtherSources checks that getent is run if nsswitch.conf names another source than files, once for each query.
func TestOtherSources(t *testing.T) {
	h, commands, _, root := smallHost(t, map[string]host.Output{
		"getent": {Stdout: "ldap:*:5000:100:L:/home/ldap:/bin/sh\n"}})
	if _, ok, err := h.Accounts.User("ldap"); ok || err != nil || len(commands.commands) > 0 {
		t.Errorf("with files alone: %v, %v, %q", ok, err, commands.lines())
	}
	hosttest.Put(t, filepath.Join(root, "etc/nsswitch.conf"),
		"# who\npasswd:\tfiles [NOTFOUND=continue] sss # x\ngroup: files compat\n", 0o644)
	h, err := machine.New(host.Options{Root: root, Commands: commands})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		u, ok, err := h.Accounts.User("ldap")
		if !ok || err != nil || u.UID != 5000 {
			t.Errorf("ldap is %+v, %v, %v", u, ok, err)
		}
		for _, name := range []string{"alice", "5000", "-i", ""} {
			if _, _, err := h.Accounts.User(name); err != nil {
				t.Error(err)
			}
		}
		if _, ok, _ := h.Accounts.Group("nogroup"); ok {
			t.Error("a group is looked up in a source of users only")
		}
	}
	if got, want := commands.lines(), []string{"/usr/sbin/getent passwd ldap <"}; !reflect.DeepEqual(got, want) {
		t.Errorf("ran %q, want %q", got, want)
	}
	if got := commands.commands[0]; !got.Quiet || got.Limit == 0 {
		t.Errorf("getent runs as %+v; it changes nothing and may hang", got)
	}
	commands.answers["getent"] = host.Output{Code: 2}
	if _, ok, err := h.Accounts.UserByID(77); ok || err != nil {
		t.Errorf("a user with the missing ID 77: %v, %v", ok, err)
	}
	commands.answers["getent"] = host.Output{Code: 1, Stderr: "no server"}
	if _, _, err := h.Accounts.UserByID(78); err == nil || !strings.Contains(err.Error(), "no server") {
		t.Errorf("a source that fails: %v", err)
	}
}

// TestGroupsFromOtherSources checks the groups of a user that no file has.
func TestGroupsFromOtherSources(t *testing.T) {
	_, commands, _, root := smallHost(t, nil)
	hosttest.Put(t, filepath.Join(root, "etc/nsswitch.conf"), "passwd: files sss\ngroup: files sss\n", 0o644)
	h, err := machine.New(host.Options{Root: root, Commands: answer(func(argv []string) string {
		return map[string]string{"passwd ldap": "ldap:*:5000:100:L:/home/ldap:/bin/sh\n",
			"initgroups ldap": "ldap                  4 6000 6001\n", "group 6000": "far:*:6000:\n"}[strings.Join(argv[1:], " ")]
	})})
	if err != nil {
		t.Fatal(err)
	}
	groups, err := h.Accounts.GroupsOf("ldap")
	if want := []string{"adm", "far", "users"}; err != nil || !reflect.DeepEqual(groups, want) {
		t.Errorf("groups are %v, %v, want %v", groups, err, want)
	}
	if len(commands.commands) > 0 {
		t.Errorf("ran %q", commands.lines())
	}
}

// answer is a fake of host.Commands. It returns the output of a command; an empty one becomes exit code 2, as getent
// has it.
type answer func(argv []string) string

func (answer) Allowed(string) error { return nil }

func (a answer) Run(_ context.Context, c host.Command) (host.Output, error) {
	if text := a(c.Argv); text != "" {
		return host.Output{Stdout: text}, nil
	}
	return host.Output{Code: 2}, nil
}

// TestHints checks the explanations of the tools' exit codes.
func TestHints(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("an ordinary user gets the hint to run as root for every code")
	}
	for _, c := range []struct {
		tool string
		code int
		hint string
	}{{"useradd", 4, "another uid"}, {"groupadd", 4, "another gid"}, {"useradd", 9, "set gid"}, {"useradd", 1, "/etc"},
		{"userdel", 8, "force: True"}, {"useradd", 99, ""}} {
		err := &host.ToolError{Tool: c.tool, Code: c.code, Text: "why"}
		if err.Error() != "why" || !strings.Contains(diag.HintOf(err), c.hint) || (c.hint == "") != (diag.HintOf(err) == "") {
			t.Errorf("%s ending with %d: %v (hint: %s), want a hint with %q", c.tool, c.code, err, diag.HintOf(err), c.hint)
		}
	}
}

// TestMissingTool checks that the hint names the package to install.
func TestMissingTool(t *testing.T) {
	h, _, _, root := smallHost(t, nil)
	if err := os.Remove(filepath.Join(root, "usr/sbin/groupadd")); err != nil {
		t.Fatal(err)
	}
	err := h.Accounts.AddGroup(context.Background(), host.NewGroup{Name: "crew-without-a-tool"})
	if os.Getenv("PATH") != "" && err == nil {
		t.Error("a group was made without a tool")
	}
	if err != nil && !strings.Contains(diag.HintOf(err), "install") {
		t.Errorf("%v (hint: %s)", err, diag.HintOf(err))
	}
}

// TestLock checks that a change waits for another process that holds the lock of the accounts.
func TestLock(t *testing.T) {
	h, commands, _, root := smallHost(t, nil)
	hosttest.Put(t, filepath.Join(root, "etc/.pwd.lock"), "", 0o600)
	f, err := os.OpenFile(filepath.Join(root, "etc/.pwd.lock"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}); err != nil {
		t.Skipf("this kernel has no such locks: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if err := h.Accounts.RemoveGroup(ctx, "adm"); !errors.Is(err, context.DeadlineExceeded) || diag.HintOf(err) == "" ||
		len(commands.commands) > 0 {
		t.Errorf("while others hold the lock: %v after %q, want a wait that ends with the run", err, commands.lines())
	}
	time.AfterFunc(100*time.Millisecond, func() { f.Close() })
	if err := h.Accounts.RemoveGroup(context.Background(), "adm"); err != nil || len(commands.commands) != 1 {
		t.Errorf("after the lock is released: %v after %q", err, commands.lines())
	}
}

// TestPlannedIDsMatchTools compares planned IDs with those that the real tools assign, for account files of many
// shapes.
func TestPlannedIDsMatchTools(t *testing.T) {
	root := hosttest.Chroot(t)
	for i, c := range []struct{ passwd, group, login, defaults string }{
		{},
		{passwd: "top:x:60000:1000::/:/bin/sh\n"},
		{passwd: "low:x:101:1000::/:/bin/sh\n", login: "SYS_UID_MAX 110\nSYS_GID_MAX 105\n"},
		{group: "taken:x:1001:\nhigh:x:2000:\n"},
		{login: "UID_MIN 500\nUID_MAX 502\nGID_MIN 700\n", passwd: "a:x:502:1::/:/bin/sh\n"},
		{login: "USERGROUPS_ENAB no\n", defaults: "GROUP=100\nHOME=/srv/homes\nSHELL=/bin/other\n"},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			hosttest.Tree(t, root)
			for file, text := range map[string]string{"etc/passwd": c.passwd, "etc/group": c.group, "etc/login.defs": c.login,
				"etc/default/useradd": c.defaults} {
				add(t, filepath.Join(root, file), text)
			}
			h, err := machine.New(host.Options{Root: root, Chroot: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range []host.NewUser{{Name: "one"}, {Name: "two", System: true}, {Name: "three", OwnGroup: ptr(true)},
				{Name: "four", OwnGroup: ptr(false)}, {Name: "five", UID: ptr(77)}, {Name: "six", UID: ptr(78), System: true}} {
				checkPlannedUser(t, h, n)
			}
			planned, err := h.Accounts.PlanGroup(host.NewGroup{Name: "crew"})
			if err != nil {
				t.Fatal(err)
			}
			if err := h.Accounts.AddGroup(context.Background(), host.NewGroup{Name: "crew"}); err != nil {
				t.Fatal(err)
			}
			if got, _, _ := h.Accounts.Group("crew"); got.GID != planned.GID {
				t.Errorf("the group is %+v, planned was %+v", got, planned)
			}
		})
	}
}

func checkPlannedUser(t *testing.T, h *host.Host, n host.NewUser) {
	t.Helper()
	planned, groups, planErr := h.Accounts.PlanUser(n)
	err := h.Accounts.AddUser(context.Background(), n)
	if (planErr == nil) != (err == nil) {
		t.Errorf("creating %s: %v, planned was %v", n.Name, err, planErr)
	}
	if err != nil {
		return
	}
	got, _, _ := h.Accounts.User(n.Name)
	gotGroups, _ := h.Accounts.GroupsOf(n.Name)
	if got != planned || !reflect.DeepEqual(gotGroups, groups) {
		t.Errorf("%s is %+v in %v, planned was %+v in %v", n.Name, got, gotGroups, planned, groups)
	}
}

// add appends text to a file; of settings that occur twice, the later one counts.
func add(t *testing.T, path, text string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for _, line := range strings.SplitAfter(string(data), "\n") {
		key := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t=", r) })
		if len(key) == 0 || !strings.Contains("\n"+text, "\n"+key[0]) {
			kept = append(kept, line)
		}
	}
	hosttest.Put(t, path, strings.Join(kept, "")+text, 0o644)
}
