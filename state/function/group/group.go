// Package group implements group.*: the groups of the host.
package group

import (
	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/value"
)

type group struct{ *function.Facts }

// Functions returns the functions of group that templates may call.
func Functions(f *function.Facts) function.Table {
	g := group{f}
	return function.Table{
		"group.info":   function.Of("name, root=None", g.info),
		"group.getent": function.Of("refresh=False, root=None", g.all),
	}
}

// info returns the attributes of a group, or an empty mapping if it does not exist.
func (g group) info(name string, _ any) (*value.Map, error) {
	found, ok, err := g.Host.Accounts.Group(name)
	if err != nil || !ok {
		return value.NewMap(), err
	}
	return value.NewMap("name", found.Name, "passwd", found.Password, "gid", found.GID, "members",
		value.Strings(found.Members...)), nil
}

func (g group) all(_, _ any) (*value.List, error) {
	return function.Accounts(g.Host, "/etc/group", g.info)
}

// Acting returns the functions that add and delete groups.
func Acting(f *function.Facts) function.Table {
	return function.StateFunctions(f, map[string]function.ByState{
		"group.add":    {Signature: "name", State: "group.present", True: true},
		"group.delete": {Signature: "name", State: "group.absent", True: true},
	})
}
