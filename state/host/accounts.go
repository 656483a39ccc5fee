package host

import (
	"context"
	"slices"

	"github.com/corpus-agent/corpus-agent/state/host/passwd"
)

// Accounts are the users and groups of a host.
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
	// AllUsers and AllGroups return those of the files; other sources need not list all they know. Callers must not
	// change the result.
	AllUsers() ([]User, error)
	AllGroups() ([]Group, error)
	// Shadow returns the password entry of a user, which only root may read.
	Shadow(user string) (Shadow, bool, error)

	// PlanUser returns the account that AddUser would create, with its IDs, and the groups it would be in; PlanGroup
	// tells the same for AddGroup. An error says why they would fail.
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

// Shadow is a line of /etc/shadow. Dates are days since 1970; -1 is a field that is empty.
type Shadow struct {
	Name, Hash                                   string
	LastChange, Min, Max, Warn, Inactive, Expire int
}

// NewUser is an account to be made. What is left out is as the host's defaults say.
type NewUser struct {
	Name       string
	UID        *int
	Group      string   // the user's own group, by name or number
	OwnGroup   *bool    // make a group of the user's name; nil does as login.defs says
	Groups     []string // the groups it is a member of besides
	Gecos      string
	Home       string
	CreateHome bool
	Shell      string
	NonUnique  bool // the number may be another's too
	System     bool // take a number from the range of system accounts
	NoLog      bool // leave the account out of lastlog and faillog

	Expected Expected // PlanUser counts them as made; AddUser does not
}

// Expected are accounts that earlier steps of a dry run would make and remove, for the plans of later ones.
type Expected struct {
	Users      []User
	Groups     []Group
	GoneUsers  []string
	GoneGroups []string
}

// Has reports whether a group would be there though the host has none of its name yet.
func (e Expected) Has(group string) bool {
	return slices.ContainsFunc(e.Groups, func(g Group) bool { return g.Name == group })
}

// Group finds a group as earlier steps of a dry run would leave it.
func (e Expected) Group(accounts Accounts, name string) (Group, bool, error) {
	if slices.Contains(e.GoneGroups, name) {
		return Group{}, false, nil
	}
	g, there, err := accounts.Group(name)
	if i := slices.IndexFunc(e.Groups, func(g Group) bool { return g.Name == name }); !there && err == nil && i >= 0 {
		return e.Groups[i], true, nil
	}
	return g, there, err
}

// User finds a user as earlier steps of a dry run would leave it.
func (e Expected) User(accounts Accounts, name string) (User, bool, error) {
	if slices.Contains(e.GoneUsers, name) {
		return User{}, false, nil
	}
	u, there, err := accounts.User(name)
	if i := slices.IndexFunc(e.Users, func(u User) bool { return u.Name == name }); !there && err == nil && i >= 0 {
		return e.Users[i], true, nil
	}
	return u, there, err
}

// UserChange has the new values for a user; nil leaves a value unchanged.
type UserChange struct {
	UID         *int
	NonUnique   bool
	Group       *string // by name or number
	Groups      *[]string
	KeepGroups  bool // Groups are added to those that the user has
	Gecos       *string
	Home        *string // the directory is neither made nor moved
	Shell       *string
	LockedState *bool // whether the password is locked
}

// UserRemoval says how a user goes.
type UserRemoval struct {
	Purge bool // its home and mail with it
	Force bool // even while it is logged in
}

// ShadowChange has the new values for a password entry; nil leaves a value unchanged. Days of -1 empty a field.
type ShadowChange struct {
	Hash                                         *string // "" for a password that is not asked for
	LastChange, Min, Max, Warn, Inactive, Expire *int
}

// NewGroup is a group to be made.
type NewGroup struct {
	Name      string
	GID       *int
	NonUnique bool
	System    bool
	Members   []string

	Expected Expected // PlanGroup counts them as made; AddGroup does not
}

// GroupChange has the new values for a group; nil leaves a value unchanged.
type GroupChange struct {
	GID         *int
	NonUnique   bool
	Members     *[]string
	Add, Remove []string // single members
}

// Crontabs are the tables of jobs that users have with cron.
type Crontabs interface {
	// Allowed says whether there are crontabs to act on; if not, the error is a *Skipped.
	Allowed(what string) error
	// Read gives a user's crontab as its user wrote it, or "" if there is none.
	Read(ctx context.Context, user string) (string, error)
	// Write replaces a user's crontab. cron itself refuses one that it cannot read.
	Write(ctx context.Context, user, text string) error
}

type (
	// User is a line of /etc/passwd.
	User = passwd.User
	// Group is a line of /etc/group.
	Group = passwd.Group
)
