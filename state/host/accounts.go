package host

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Accounts are the users and groups of a host, as its files say.
type Accounts interface {
	// Allowed says whether accounts can be changed; if not, the error is a *Skipped.
	Allowed(what string) error
	User(name string) (User, bool, error)
	UserByID(uid int) (User, bool, error)
	Group(name string) (Group, bool, error)
	GroupByID(gid int) (Group, bool, error)
	// GroupsOf lists the groups that have the user as a member, its own group included, by name.
	GroupsOf(user string) ([]string, error)
}

// User is a line of /etc/passwd.
type User struct {
	Name, Password     string
	UID, GID           int
	Gecos, Home, Shell string
}

// Group is a line of /etc/group.
type Group struct {
	Name, Password string
	GID            int
	Members        []string
}

// accounts reads passwd and group once and again after something may have changed them.
type accounts struct {
	files   Files
	refused bool

	mu     sync.Mutex
	loaded bool
	users  []User
	groups []Group
}

func (a *accounts) Allowed(what string) error {
	if a.refused {
		return &Skipped{What: what}
	}
	return nil
}

// forget makes the next question read the files again.
func (a *accounts) forget() {
	a.mu.Lock()
	a.loaded = false
	a.mu.Unlock()
}

func (a *accounts) load() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.loaded {
		return nil
	}
	passwd, err := a.lines("/etc/passwd", 7)
	if err != nil {
		return err
	}
	group, err := a.lines("/etc/group", 4)
	if err != nil {
		return err
	}
	a.users, a.groups = a.users[:0], a.groups[:0]
	for _, f := range passwd {
		if u, ok := parseUser(f); ok {
			a.users = append(a.users, u)
		}
	}
	for _, f := range group {
		if g, ok := parseGroup(f); ok {
			a.groups = append(a.groups, g)
		}
	}
	a.loaded = true
	return nil
}

// lines splits a file of colon-separated fields. A root without the file has no accounts.
func (a *accounts) lines(path string, fields int) ([][]string, error) {
	data, err := a.files.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading accounts: %w", err)
	}
	var lines [][]string
	for line := range strings.SplitSeq(string(data), "\n") {
		if f := strings.Split(line, ":"); len(f) == fields {
			lines = append(lines, f)
		}
	}
	return lines, nil
}

func parseUser(f []string) (User, bool) {
	uid, errU := strconv.Atoi(f[2])
	gid, errG := strconv.Atoi(f[3])
	return User{Name: f[0], Password: f[1], UID: uid, GID: gid, Gecos: f[4], Home: f[5], Shell: f[6]}, errU == nil && errG == nil
}

func parseGroup(f []string) (Group, bool) {
	gid, err := strconv.Atoi(f[2])
	g := Group{Name: f[0], Password: f[1], GID: gid}
	if f[3] != "" {
		g.Members = strings.Split(f[3], ",")
	}
	return g, err == nil
}

func (a *accounts) User(name string) (User, bool, error) {
	return find(a, &a.users, func(u User) bool { return u.Name == name })
}

func (a *accounts) UserByID(uid int) (User, bool, error) {
	return find(a, &a.users, func(u User) bool { return u.UID == uid })
}

func (a *accounts) Group(name string) (Group, bool, error) {
	return find(a, &a.groups, func(g Group) bool { return g.Name == name })
}

func (a *accounts) GroupByID(gid int) (Group, bool, error) {
	return find(a, &a.groups, func(g Group) bool { return g.GID == gid })
}

func (a *accounts) GroupsOf(user string) ([]string, error) {
	u, known, err := a.User(user)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var names []string
	for _, g := range a.groups {
		if known && g.GID == u.GID || slices.Contains(g.Members, user) {
			names = append(names, g.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// find loads the files and searches a table of them; the table is given by address, since loading
// replaces it.
func find[T any](a *accounts, table *[]T, is func(T) bool) (T, bool, error) {
	var none T
	if err := a.load(); err != nil {
		return none, false, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := slices.IndexFunc(*table, is); i >= 0 {
		return (*table)[i], true, nil
	}
	return none, false, nil
}
