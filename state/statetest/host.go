package statetest

import (
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
)

// Host is the host of a case: a real tree in a temporary directory, with owners, accounts and commands that are kept in
// memory. Its agent is root, unless the case says otherwise.
type Host struct {
	*host.Host
	Dir   string    // directory of the tree on the disk
	Users *Accounts // the accounts, also as Host.Accounts
	Cron  *Crontabs // the crontabs, also as Host.Crontabs

	ordinary bool
	watched  map[string]func() string
}

// NewHost returns a host with only /etc, /srv and /tmp, the users root and games and the groups root, games and users.
// It has no commands: a test sets some with
//
//	h.Commands = statetest.Commands(func(c host.Command) (host.Output, error) { ... })
func NewHost(t *testing.T) *Host {
	t.Helper()
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o755))
	real, err := machine.New(host.Options{Root: dir})
	must(t, err)
	h := &Host{Host: real, Dir: dir, Users: NewAccounts(), Cron: &Crontabs{Tabs: map[string]string{}},
		watched: map[string]func() string{}}
	h.Files = &owners{Files: real.Files, of: map[uint64]owner{}, ordinary: &h.ordinary}
	h.Accounts, h.Crontabs, h.Users.Files, h.Kernel = h.Users, h.Cron, h.Files, kernel{h}
	must(t, h.Files.Mkdir("/tmp", 0o777|fs.ModeSticky))
	must(t, h.Files.Mkdir("/etc", 0o755))
	must(t, h.Files.Mkdir("/srv", 0o755))
	return h
}

// Watch adds a value outside of the tree that a dry run must not change; state returns it.
func (h *Host) Watch(what string, state func() string) { h.watched[what] = state }

// Snapshot describes the whole host: files with their owners, accounts, and the values added with Watch.
func (h *Host) Snapshot(t *testing.T) Tree {
	t.Helper()
	tree, err := Snapshot(h.Dir)
	must(t, err)
	for p, e := range tree {
		info, err := h.Files.Lstat(p)
		must(t, err)
		e.User, e.Group = h.Users.userName(info.UID), h.Users.groupName(info.GID)
		tree[p] = e
	}
	tree["the accounts"], tree["the crontabs"] = File(h.Users.String()), File(h.Cron.String())
	for what, state := range h.watched {
		tree[what] = File(state())
	}
	return tree
}

// tidy reports temporary files that were left behind.
func (h *Host) tidy(t *testing.T) {
	t.Helper()
	for p := range h.Snapshot(t) {
		if strings.HasPrefix(path.Base(p), ".corpus-tmp-") {
			t.Errorf("%s was left behind", p)
		}
	}
}

func inode(info fs.FileInfo) uint64 { return info.Sys().(*syscall.Stat_t).Ino }
