package host

import (
	"context"
	"slices"
	"sync"
)

// Accounts are the users and groups of a host.
//
// What is asked is answered from /etc/passwd, /etc/group and /etc/shadow, read once and again after
// something may have changed them. A name or number they lack is looked for where nsswitch.conf says
// that accounts come from elsewhere too (LDAP, sssd ...). Changes are made by the system's own
// tools, since they know its locks, its skeleton of a home and its subordinate ids.
type Accounts interface {
	// Allowed says whether accounts can be changed; if not, the error is a *Skipped.
	Allowed(what string) error

	User(name string) (User, bool, error)
	UserByID(uid int) (User, bool, error)
	Group(name string) (Group, bool, error)
	GroupByID(gid int) (Group, bool, error)
	// GroupsOf lists the groups that have the user as a member, its own group included, by name.
	GroupsOf(user string) ([]string, error)
	// AllUsers and AllGroups are those of the files; other sources need not tell all they know. Nobody
	// may change what they give.
	AllUsers() ([]User, error)
	AllGroups() ([]Group, error)
	// Shadow is what only root may read of a user.
	Shadow(user string) (Shadow, bool, error)

	// PlanUser tells the account AddUser would make, its numbers included, and the groups it would be
	// in; PlanGroup tells the same for AddGroup. An error says why they would fail.
	PlanUser(n NewUser) (User, []string, error)
	PlanGroup(n NewGroup) (Group, error)

	AddUser(ctx context.Context, n NewUser) error
	ChangeUser(ctx context.Context, name string, c UserChange) error
	RemoveUser(ctx context.Context, name string, r UserRemoval) error
	// SetShadow changes a user's password and how it ages.
	SetShadow(ctx context.Context, name string, c ShadowChange) error
	AddGroup(ctx context.Context, n NewGroup) error
	ChangeGroup(ctx context.Context, name string, c GroupChange) error
	RemoveGroup(ctx context.Context, name string) error
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

// Shadow is a line of /etc/shadow. Dates are days since 1970; -1 is a field that is empty.
type Shadow struct {
	Name, Hash                                   string
	LastChange, Min, Max, Warn, Inactive, Expire int
}

// accounts answers from the files of a host and changes them by its commands.
type accounts struct {
	files    Files
	commands Commands
	recorder Recorder
	refused  bool

	mu     sync.Mutex
	tables *tables           // nil until read
	shadow map[string]Shadow // nil until read
	others map[string]string // what other sources answered, "" for nothing
}

// tables are passwd and group, indexed by everything they are asked for.
type tables struct {
	allUsers   []User
	allGroups  []Group
	users      map[string]User
	usersByID  map[int]User
	groups     map[string]Group
	groupsByID map[int]Group
	memberOf   map[string][]string // by user, what group lines say
	byGID      map[int][]string    // names that share a number
	elsewhere  map[string]bool     // by database: nsswitch names more than files
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
	a.tables, a.shadow, a.others = nil, nil, nil
	a.mu.Unlock()
}

// read gives the tables. They are never changed once made, so the lock guards only the reading.
func (a *accounts) read() (*tables, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.tables != nil {
		return a.tables, nil
	}
	passwd, err := a.lines("/etc/passwd")
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
	a.tables = index(parsePasswd(passwd), parseGroup(group))
	a.tables.elsewhere = parseSwitch(nsswitch)
	return a.tables, nil
}

// index keeps the first of several lines for one name or number, as the C library does.
func index(users []User, groups []Group) *tables {
	t := &tables{
		allUsers: users, allGroups: groups,
		users: map[string]User{}, usersByID: map[int]User{}, groups: map[string]Group{}, groupsByID: map[int]Group{},
		memberOf: map[string][]string{}, byGID: map[int][]string{},
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

func (a *accounts) User(name string) (User, bool, error) {
	t, err := a.read()
	if err != nil {
		return User{}, false, err
	}
	if u, ok := t.users[name]; ok {
		return u, true, nil
	}
	return elsewhere(a, t, "passwd", named(name), parsePasswd)
}

func (a *accounts) UserByID(uid int) (User, bool, error) {
	t, err := a.read()
	if err != nil {
		return User{}, false, err
	}
	if u, ok := t.usersByID[uid]; ok {
		return u, true, nil
	}
	return elsewhere(a, t, "passwd", number(uid), parsePasswd)
}

func (a *accounts) Group(name string) (Group, bool, error) {
	t, err := a.read()
	if err != nil {
		return Group{}, false, err
	}
	if g, ok := t.groups[name]; ok {
		return g, true, nil
	}
	return elsewhere(a, t, "group", named(name), parseGroup)
}

func (a *accounts) GroupByID(gid int) (Group, bool, error) {
	t, err := a.read()
	if err != nil {
		return Group{}, false, err
	}
	if g, ok := t.groupsByID[gid]; ok {
		return g, true, nil
	}
	return elsewhere(a, t, "group", number(gid), parseGroup)
}

func (a *accounts) GroupsOf(user string) ([]string, error) {
	u, known, err := a.User(user)
	if err != nil {
		return nil, err
	}
	t, err := a.read()
	if err != nil {
		return nil, err
	}
	// The kernel knows groups by number, so a group that shares one is had as well.
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

func (a *accounts) AllUsers() ([]User, error) {
	t, err := a.read()
	if err != nil {
		return nil, err
	}
	return t.allUsers, nil
}

func (a *accounts) AllGroups() ([]Group, error) {
	t, err := a.read()
	if err != nil {
		return nil, err
	}
	return t.allGroups, nil
}

func (a *accounts) Shadow(user string) (Shadow, bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.shadow == nil {
		text, err := a.lines("/etc/shadow")
		if err != nil {
			return Shadow{}, false, err
		}
		a.shadow = map[string]Shadow{}
		for _, s := range parseShadow(text) {
			keepFirst(a.shadow, s.Name, s)
		}
	}
	s, ok := a.shadow[user]
	return s, ok, nil
}
