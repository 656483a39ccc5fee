// Package user implements user.*: the users of the host.
package user

import (
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

type user struct{ *function.Facts }

// Functions returns the functions of user that templates may call.
func Functions(f *function.Facts) function.Table {
	u := user{f}
	return function.Table{
		"user.info":          function.Of("name, root=None", u.info),
		"user.list_users":    function.Of("root=None", u.names),
		"user.list_groups":   function.Of("name", u.groups),
		"user.primary_group": function.Of("name", u.primaryGroup),
		"user.getent":        function.Of("refresh=False, root=None", u.all),
	}
}

// info returns the attributes of a user, or an empty mapping if it does not exist.
func (u user) info(name string, _ any) (*value.Map, error) {
	account, ok, err := u.Host.Accounts.User(name)
	if err != nil || !ok {
		return value.NewMap(), err
	}
	return u.describe(account)
}

func (u user) describe(a host.User) (*value.Map, error) {
	groups, err := u.Host.Accounts.GroupsOf(a.Name)
	gecos := append(strings.SplitN(a.Gecos, ",", 5), "", "", "", "")
	return value.NewMap("gid", a.GID, "groups", value.Strings(groups...), "home", a.Home, "name", a.Name, "passwd",
		a.Password,
		"shell", a.Shell, "uid", a.UID, "fullname", gecos[0], "roomnumber", gecos[1], "workphone", gecos[2], "homephone",
		gecos[3],
		"other", gecos[4]), err
}

func (u user) groups(name string) ([]string, error) {
	groups, err := u.Host.Accounts.GroupsOf(name)
	if groups == nil {
		groups = []string{}
	}
	return groups, err
}

func (u user) primaryGroup(name string) (string, error) {
	account, ok, err := u.Host.Accounts.User(name)
	if err != nil || !ok {
		return "", err
	}
	g, _, err := u.Host.Accounts.GroupByID(account.GID)
	return g.Name, err
}

func (u user) names(any) ([]string, error) {
	names, err := function.AccountNames(u.Host, "/etc/passwd")
	slices.Sort(names)
	return names, err
}

func (u user) all(_, _ any) (*value.List, error) {
	return function.Accounts(u.Host, "/etc/passwd", u.info)
}

// Acting returns the functions that add and delete users.
func Acting(f *function.Facts) function.Table {
	return function.StateFunctions(f, map[string]function.ByState{
		"user.add": {Signature: "name", State: "user.present", True: true},
		"user.delete": {Signature: "name, remove=False", State: "user.absent", Rename: map[string]string{"remove": "purge"},
			True: true},
	})
}
