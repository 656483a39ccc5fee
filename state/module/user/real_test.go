package user_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/module/user"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestRealTools runs the host's account tools in a chroot and compares the result with the prediction of the
// checks.
func TestRealTools(t *testing.T) {
	root := hosttest.Chroot(t)
	h, err := machine.New(host.Options{Root: root, Chroot: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		function string
		args     *value.Map
		changes  *value.Map // nil: any changes that Check predicted
	}{
		{"present", args("bob", "fullname", "Bob B", "groups", list("games"), "password", "$6$abc$def", "mindays", 0,
			"maxdays", 60, "warndays", 5,
			"inactdays", 3, "expire", 30000, "date", 18000), nil},
		{"present", args("sam", "system", true, "createhome", false, "usergroup", false, "empty_password", true),
			value.NewMap("gid", 100,
				"groups", list("users"), "home", "", "name", "sam", "passwd", "x", "shell", "/bin/sh", "uid", 999,
				"fullname", "", "roomnumber", "",
				"workphone", "", "homephone", "", "other", "", "password", "")},
		{"present", args("sid", "system", true), nil},
		{"present", args("carl", "uid", 1500, "usergroup", true, "optional_groups", list("nowhere", "users"),
			"home", "/srv/a/carl"), nil},
		{"present", args("dora", "password", "opensesame", "hash_password", true), nil},
		{"present", args("dora", "password", "opensesame", "hash_password", true), value.NewMap()},
		{"present", args("erin", "gid", "carl", "unique", false, "uid", 1500, "nologinit", true), nil},
		{"present", args("games", "groups", list("games")), nil},
		{"present", args("alice", "password", "$6$new$hash", "date", 19000), value.NewMap("passwd", "XXX-REDACTED-XXX")},
		{"present", args("alice", "password", "$6$new$hash", "password_lock", true),
			value.NewMap("passwd", "XXX-REDACTED-XXX")},
		{"present", args("alice", "password_lock", false), value.NewMap("passwd", "XXX-REDACTED-XXX")},
		{"present", args("alice", "mindays", 1, "maxdays", -1, "warndays", 14, "inactdays", 30, "expire", -1),
			value.NewMap("min", 1, "max", -1,
				"warn", 14, "inact", 30)},
		{"present", args("alice", "empty_password", true), value.NewMap("passwd", "XXX-REDACTED-XXX")},
		{"present", args("alice", "uid", 1700, "allow_uid_change", true, "gid", "users", "allow_gid_change", true,
			"groups", list("alice"), "shell", "/bin/bash",
			"home", "/srv/alice", "fullname", "A"), value.NewMap("gid", 100, "groups", list("alice", "users"), "home",
			"/srv/alice", "shell", "/bin/bash",
			"uid", 1700, "fullname", "A")},
		{"present", args("alice", "groups", list("games"), "remove_groups", false), nil},
		{"present", args("alice", "groups", list()), value.NewMap("groups", list("users"))},
		{"absent", args("dora", "purge", true), value.NewMap("dora group", "removed", "dora", "removed")},
		{"absent", args("sam"), value.NewMap("sam", "removed")},
		{"absent", args("bob"), nil},
	} {
		report := hosttest.Converge(t, h, user.Functions(), step.function, step.args)
		if step.changes != nil && !value.Equal(step.changes, report.Changes) {
			t.Errorf("%s of %s reports\n%s\nwant\n%s", step.function, value.Repr(step.args), value.Repr(report.Changes),
				value.Repr(step.changes))
		}
	}
	for path, exists := range map[string]bool{"home/bob": true, "home/dora": false, "srv/a/carl": true,
		"srv/alice": true, "home/sam": false} {
		if _, err := os.Stat(filepath.Join(root, path)); (err == nil) != exists {
			t.Errorf("/%s: %v, want it to exist: %v", path, err, exists)
		}
	}
}

// TestErrorsOfTheAccountTools covers failures that only the account tools detect.
func TestErrorsOfTheAccountTools(t *testing.T) {
	root := hosttest.Chroot(t)
	hosttest.Put(t, filepath.Join(root, "srv/file"), "not a directory", 0o644)
	for _, c := range []struct {
		name        string
		args        *value.Map
		cause, hint string
	}{
		{"an invalid name", args("no:name"), "colon", ""},
		{"a name that useradd refuses", args("-Rx"), "useradd", ""},
		{"a home that cannot be created", args("bob", "home", "/srv/file/bob"),
			"cannot create directory", "createhome: False"},
		{"a home of an existing user that cannot be created", args("alice", "home", "/srv/file/alice"), "/srv/file", ""},
		{"the uid of another user", args("alice", "uid", 1, "allow_uid_change", true),
			"UID '1' already exists", "choose another uid"},
		{"a lock of an account without a password", args("daemon", "password_lock", true, "createhome", false), "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, err := machine.New(host.Options{Root: root, Chroot: true})
			if err != nil {
				t.Fatal(err)
			}
			resource := hosttest.Resource(t, user.Functions(), "present", c.args)
			diff, err := resource.Check(context.Background(), h)
			if err == nil {
				_, err = resource.Apply(context.Background(), h, diff)
			}
			if c.cause == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.cause) || !strings.Contains(diag.HintOf(err), c.hint) {
				t.Errorf("error %v with hint %q; want %q and %q", err, diag.HintOf(err), c.cause, c.hint)
			}
		})
	}
}

func args(name string, more ...any) *value.Map {
	return value.NewMap(append([]any{"name", name}, more...)...)
}

func list(names ...string) *value.List { return value.Strings(names...) }
