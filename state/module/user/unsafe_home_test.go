package user_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/module/user"
)

// TestHomeBelowADirectoryOfAnotherUser creates and removes home directories below a directory that another user
// controls, where the account tools would follow links.
func TestHomeBelowADirectoryOfAnotherUser(t *testing.T) {
	root := hosttest.Chroot(t)
	const mallory = 64001
	theirs := filepath.Join(root, "srv/lair")
	for _, dir := range []string{theirs, filepath.Join(root, "etc/victim/old")} {
		must(t, os.MkdirAll(dir, 0o755))
	}
	must(t, os.Lchown(theirs, mallory, mallory))
	link := filepath.Join(theirs, "link")
	must(t, os.Symlink("/etc/victim", link))
	must(t, os.Lchown(link, mallory, mallory))
	hosttest.Put(t, filepath.Join(root, "etc/victim/old/f"), "root's", 0o644)
	h, err := machine.New(host.Options{Root: root, Chroot: true})
	must(t, err)
	ctx := context.Background()

	hosttest.Converge(t, h, user.Functions(), "present", args("inside", "home", "/srv/lair/inside"))
	if info, err := os.Lstat(filepath.Join(theirs, "inside")); err != nil || !info.IsDir() {
		t.Errorf("the home of inside: %v", err)
	}
	through := host.NewUser{Name: "through", Home: "/srv/lair/link/home", CreateHome: true}
	refused(t, h.Accounts.AddUser(ctx, through))
	if _, there, _ := h.Accounts.User("through"); there {
		t.Error("an account was created although its home is refused")
	}
	if _, err := os.Lstat(filepath.Join(root, "etc/victim/home")); err == nil {
		t.Error("useradd created a home through a link of another user")
	}

	must(t, h.Accounts.AddUser(ctx, host.NewUser{Name: "old", Home: "/srv/lair/link/old"}))
	refused(t, h.Accounts.RemoveUser(ctx, "old", host.UserRemoval{Purge: true}))
	uid := 1900
	refused(t, h.Accounts.ChangeUser(ctx, "old", host.UserChange{UID: &uid}))
	must(t, h.Accounts.RemoveUser(ctx, "old", host.UserRemoval{}))
	if _, err := os.Lstat(filepath.Join(root, "etc/victim/old/f")); err != nil {
		t.Errorf("userdel removed a directory through a link of another user: %v", err)
	}

	must(t, h.Following().Accounts.AddUser(ctx, through))
	if _, err := os.Lstat(filepath.Join(root, "etc/victim/home")); err != nil {
		t.Errorf("with follow_unsafe: %v", err)
	}
}

func refused(t *testing.T, err error) {
	t.Helper()
	if hint, unsafe := host.Unsafe(err); !unsafe || !strings.Contains(hint, "follow_unsafe") {
		t.Errorf("an account tool follows a path of another user: %v", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
