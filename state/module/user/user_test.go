package user_test

import (
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/user"
	"github.com/corpus-agent/corpus-agent/state/statetest"
)

func TestConformance(t *testing.T) {
	statetest.Run(t, statetest.Suite{
		State:     "user",
		Functions: func(*statetest.Host) module.Table { return user.Functions() },
		Prepare:   people,
		Cases:     statetest.Load(t, "../../../testdata/modules/account/user.yaml"),
	})
}

// people adds the users of the cases to a host.
func people(t *testing.T, h *statetest.Host) {
	t.Helper()
	h.Users.Users = append(h.Users.Users,
		host.User{Name: "alice", Password: "x", UID: 1000, GID: 1000, Gecos: "Alice A,12,34,56,staff,more",
			Home: "/home/alice", Shell: "/bin/sh"},
		host.User{Name: "homeless", Password: "x", UID: 500, GID: 100, Home: "/home/homeless", Shell: "/bin/sh"})
	h.Users.Groups = append(h.Users.Groups, host.Group{Name: "alice", GID: 1000}, host.Group{Name: "team", GID: 2000},
		host.Group{Name: "adm", GID: 4, Members: []string{"alice"}})
	h.Users.Groups[2].Members = []string{"alice"} // users
	for name, hash := range map[string]string{"alice": "$6$abc$def", "homeless": "!"} {
		h.Users.Shadows = append(h.Users.Shadows,
			host.Shadow{Name: name, Hash: hash, LastChange: 19000, Max: 99999, Warn: 7, Inactive: -1, Expire: -1})
	}
	h.Build(t, statetest.Tree{"/etc/login.defs": statetest.File("USERGROUPS_ENAB yes\n"), "/home/alice": {Kind: "dir"}})
}
