// Package accounts reads and changes the users, groups and crontabs of a host.
//
// It reads /etc/passwd, /etc/group and /etc/shadow, and getent if nsswitch.conf names other sources. Changes are made
// by the system's tools, after the recorder has recorded them.
package accounts

import (
	"slices"
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/passwd"
)

// Accounts implements host.Accounts with the files and the commands of a host.
type Accounts struct {
	files    host.Files
	commands host.Commands
	recorder host.ChangeRecorder
	refused  bool

	mu     sync.Mutex
	tables *tables                // nil until read
	shadow map[string]host.Shadow // nil until read
	others map[string]string      // results of getent by query, "" for none
}

// New returns the Accounts of a host.
func New(h *host.Host, o host.Options) *Accounts {
	return &Accounts{files: h.Files, commands: h.Commands, recorder: o.Recorder, refused: o.Refuses()}
}

// tables holds the content of passwd and group with its indexes.
type tables struct {
	allUsers   []host.User
	allGroups  []host.Group
	users      map[string]host.User
	usersByID  map[int]host.User
	groups     map[string]host.Group
	groupsByID map[int]host.Group
	memberOf   map[string][]string // groups by user, from the lines of the group file
	byGID      map[int][]string    // names of groups that share an ID
	elsewhere  map[string]bool     // by database: nsswitch.conf names other sources than the files
}

// Allowed returns a *host.Skipped error if accounts cannot be changed.
func (a *Accounts) Allowed(what string) error {
	if a.refused {
		return &host.Skipped{What: what}
	}
	return nil
}

// Changed drops the cached content of a file that was written.
func (a *Accounts) Changed(path string) {
	if strings.HasPrefix(path, "/etc/") {
		a.Forget()
	}
}

// Forget drops the cached content of the files.
func (a *Accounts) Forget() {
	a.mu.Lock()
	a.tables, a.shadow, a.others = nil, nil, nil
	a.mu.Unlock()
}

// read returns the tables. They do not change once they are read, so the lock guards only the reading.
func (a *Accounts) read() (*tables, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.tables != nil {
		return a.tables, nil
	}
	users, err := a.lines("/etc/passwd")
	if err != nil {
		return nil, err
	}
	group, err := a.lines("/etc/group")
	if err != nil {
		return nil, err
	}
	nsswitch, err := a.lines("/etc/nsswitch.conf")
	if err != nil {
		return nil, err
	}
	a.tables = index(passwd.Users(users), passwd.Groups(group))
	a.tables.elsewhere = passwd.OtherSources(nsswitch)
	return a.tables, nil
}

// index uses the first of several lines for one name or ID, as the C library does.
func index(users []host.User, groups []host.Group) *tables {
	t := &tables{
		allUsers: users, allGroups: groups,
		users: map[string]host.User{}, usersByID: map[int]host.User{}, groups: map[string]host.Group{},
		groupsByID: map[int]host.Group{},
		memberOf:   map[string][]string{}, byGID: map[int][]string{},
	}
	for _, u := range users {
		keepFirst(t.users, u.Name, u)
		keepFirst(t.usersByID, u.UID, u)
	}
	for _, g := range groups {
		keepFirst(t.groups, g.Name, g)
		keepFirst(t.groupsByID, g.GID, g)
		t.byGID[g.GID] = append(t.byGID[g.GID], g.Name)
		for _, m := range g.Members {
			t.memberOf[m] = append(t.memberOf[m], g.Name)
		}
	}
	return t
}

func keepFirst[K comparable, V any](m map[K]V, key K, v V) {
	if _, ok := m[key]; !ok {
		m[key] = v
	}
}

// User returns the account with a name, from the files or from another source that nsswitch.conf names.
func (a *Accounts) User(name string) (host.User, bool, error) {
	t, err := a.read()
	if err != nil {
		return host.User{}, false, err
	}
	if u, ok := t.users[name]; ok {
		return u, true, nil
	}
	return elsewhere(a, t, "passwd", named(name), passwd.Users)
}

// UserByID returns the account with an ID, from the files or from another source that nsswitch.conf names.
func (a *Accounts) UserByID(uid int) (host.User, bool, error) {
	t, err := a.read()
	if err != nil {
		return host.User{}, false, err
	}
	if u, ok := t.usersByID[uid]; ok {
		return u, true, nil
	}
	return elsewhere(a, t, "passwd", number(uid), passwd.Users)
}

// Group returns the group with a name, from the files or from another source that nsswitch.conf names.
func (a *Accounts) Group(name string) (host.Group, bool, error) {
	t, err := a.read()
	if err != nil {
		return host.Group{}, false, err
	}
	if g, ok := t.groups[name]; ok {
		return g, true, nil
	}
	return elsewhere(a, t, "group", named(name), passwd.Groups)
}

// GroupByID returns the group with an ID, from the files or from another source that nsswitch.conf names.
func (a *Accounts) GroupByID(gid int) (host.Group, bool, error) {
	t, err := a.read()
	if err != nil {
		return host.Group{}, false, err
	}
	if g, ok := t.groupsByID[gid]; ok {
		return g, true, nil
	}
	return elsewhere(a, t, "group", number(gid), passwd.Groups)
}

// GroupsOf returns the sorted names of a user's groups, including the primary group.
func (a *Accounts) GroupsOf(user string) ([]string, error) {
	u, known, err := a.User(user)
	if err != nil {
		return nil, err
	}
	t, err := a.read()
	if err != nil {
		return nil, err
	}
	// The kernel identifies groups by ID, so a user is also a member of groups that share the ID.
	var names []string
	for _, name := range t.memberOf[user] {
		names = append(names, t.byGID[t.groups[name].GID]...)
	}
	if known {
		names = append(names, t.byGID[u.GID]...)
	}
	if _, local := t.users[user]; known && !local {
		more, err := a.otherGroups(t, user)
		if err != nil {
			return nil, err
		}
		names = append(names, more...)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// AllUsers returns the users of /etc/passwd. Callers must not change the list.
func (a *Accounts) AllUsers() ([]host.User, error) {
	t, err := a.read()
	if err != nil {
		return nil, err
	}
	return t.allUsers, nil
}

// AllGroups returns the groups of /etc/group. Callers must not change the list.
func (a *Accounts) AllGroups() ([]host.Group, error) {
	t, err := a.read()
	if err != nil {
		return nil, err
	}
	return t.allGroups, nil
}

// Shadow returns a user's line of /etc/shadow.
func (a *Accounts) Shadow(user string) (host.Shadow, bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.shadow == nil {
		text, err := a.lines("/etc/shadow")
		if err != nil {
			return host.Shadow{}, false, err
		}
		a.shadow = map[string]host.Shadow{}
		for _, s := range parseShadow(text) {
			keepFirst(a.shadow, s.Name, s)
		}
	}
	s, ok := a.shadow[user]
	return s, ok, nil
}
