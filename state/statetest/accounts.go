package statetest

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// Accounts implements host.Accounts in memory.
type Accounts struct {
	Users   []host.User
	Groups  []host.Group
	Shadows []host.Shadow
	Files   host.Files // in which homes are created
	// Refused makes every change of accounts return a *host.Skipped, as below a root.
	Refused bool
}

// NewAccounts returns the users root and games, and the groups root, games and users.
func NewAccounts() *Accounts {
	return &Accounts{
		Users: []host.User{
			{Name: "root", UID: 0, GID: 0, Home: "/root", Shell: "/bin/sh"},
			{Name: "games", UID: 5, GID: 60, Home: "/usr/games", Shell: "/usr/sbin/nologin"},
		},
		Groups: []host.Group{{Name: "root", GID: 0}, {Name: "games", GID: 60}, {Name: "users", GID: 100}},
	}
}

// Allowed returns an error if Refused is set.
func (a *Accounts) Allowed(what string) error {
	if a.Refused {
		return &host.Skipped{What: what}
	}
	return nil
}

// User returns the user with a name.
func (a *Accounts) User(name string) (host.User, bool, error) {
	return pick(a.Users, func(u host.User) bool { return u.Name == name })
}

// UserByID returns the user with an ID.
func (a *Accounts) UserByID(uid int) (host.User, bool, error) {
	return pick(a.Users, func(u host.User) bool { return u.UID == uid })
}

// Group returns the group with a name.
func (a *Accounts) Group(name string) (host.Group, bool, error) {
	return pick(a.Groups, func(g host.Group) bool { return g.Name == name })
}

// GroupByID returns the group with an ID.
func (a *Accounts) GroupByID(gid int) (host.Group, bool, error) {
	return pick(a.Groups, func(g host.Group) bool { return g.GID == gid })
}

// GroupsOf lists a user's groups.
func (a *Accounts) GroupsOf(user string) ([]string, error) {
	u, known, _ := a.User(user)
	var names []string
	for _, g := range a.Groups {
		if known && g.GID == u.GID || slices.Contains(g.Members, user) {
			names = append(names, g.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// AllUsers lists the users.
func (a *Accounts) AllUsers() ([]host.User, error) { return a.Users, nil }

// AllGroups lists the groups.
func (a *Accounts) AllGroups() ([]host.Group, error) { return a.Groups, nil }

// pick returns the first item for which the function returns true. Its results are those of methods of host.Accounts.
// The error is always nil.
func pick[T any](items []T, is func(T) bool) (T, bool, error) { //nolint:unparam // see above
	if i := slices.IndexFunc(items, is); i >= 0 {
		return items[i], true, nil
	}
	var none T
	return none, false, nil
}

// String lists all accounts.
func (a *Accounts) String() string { return fmt.Sprintf("%+v\n%+v\n%+v", a.Users, a.Groups, a.Shadows) }

func (a *Accounts) uid(t *testing.T, name string) int {
	t.Helper()
	u, ok, _ := a.User(name)
	if !ok {
		return number(t, "user", name)
	}
	return u.UID
}

func (a *Accounts) gid(t *testing.T, name string) int {
	t.Helper()
	g, ok, _ := a.Group(name)
	if !ok {
		return number(t, "group", name)
	}
	return g.GID
}

func number(t *testing.T, kind, name string) int {
	t.Helper()
	n, err := strconv.Atoi(name)
	if err != nil {
		t.Fatalf("the case has no %s %s", kind, name)
	}
	return n
}

func (a *Accounts) userName(uid int) string {
	if u, ok, _ := a.UserByID(uid); ok {
		return u.Name
	}
	return strconv.Itoa(uid)
}

func (a *Accounts) groupName(gid int) string {
	if g, ok, _ := a.GroupByID(gid); ok {
		return g.Name
	}
	return strconv.Itoa(gid)
}
