package host

import (
	"context"
	"slices"

	"github.com/corpus-agent/corpus-agent/state/host/passwd"
)

// Accounts reads and changes the users and groups of a host. It caches /etc/passwd, /etc/group and /etc/shadow until
// they may have changed. If nsswitch.conf names other sources (LDAP, sssd ...), names and IDs that the files lack are
// looked up there. Changes are made by the system's own tools, which handle its locks, skeletons of homes and
// subordinate IDs.
type Accounts interface {
	// Allowed returns a *Skipped error if accounts cannot be changed.
	Allowed(what string) error

	User(name string) (User, bool, error)
	UserByID(uid int) (User, bool, error)
	Group(name string) (Group, bool, error)
	GroupByID(gid int) (Group, bool, error)
	// GroupsOf lists the names of the groups of a user, including the primary group.
	GroupsOf(user string) ([]string, error)
	// AllUsers and AllGroups return the accounts in the files. They leave out other sources, which may be unable to list
	// all accounts. Callers must not change the result.
	AllUsers() ([]User, error)
	AllGroups() ([]Group, error)
	// Shadow returns the password entry of a user, which only root may read.
	Shadow(user string) (Shadow, bool, error)

	// PlanUser returns the account that AddUser would create, with its IDs, and the groups it would be in; PlanGroup
	// returns the same for AddGroup. An error is the reason why they would fail.
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

// Shadow is a line of /etc/shadow. Dates are days since 1970; an empty field is -1.
type Shadow struct {
	Name, Hash                                   string
	LastChange, Min, Max, Warn, Inactive, Expire int
}

// NewUser describes an account to create. Zero fields get the host's defaults.
type NewUser struct {
	Name       string
	UID        *int
	Group      string   // the user's own group, by name or ID
	OwnGroup   *bool    // create a group with the user's name; nil follows login.defs
	Groups     []string // supplementary groups
	Gecos      string
	Home       string
	CreateHome bool
	Shell      string
	NonUnique  bool // the ID may belong to another account too
	System     bool // take an ID from the range of system accounts
	NoLog      bool // leave the account out of lastlog and faillog

	Expected Expected // PlanUser treats them as existing; AddUser does not
}

// Expected holds the accounts that earlier steps of a dry run would create and remove, for the plans of later steps.
type Expected struct {
	Users      []User
	Groups     []Group
	GoneUsers  []string
	GoneGroups []string
}

// Has reports whether earlier steps would create a group that the host does not have yet.
func (e Expected) Has(group string) bool {
	return slices.ContainsFunc(e.Groups, func(g Group) bool { return g.Name == group })
}

// Group returns a group as it would be after the earlier steps of a dry run, and reports whether it would exist.
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

// User returns a user as it would be after the earlier steps of a dry run, and reports whether it would exist.
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
	Group       *string // by name or ID
	Groups      *[]string
	KeepGroups  bool // Groups are added to those that the user has
	Gecos       *string
	Home        *string // the directory is neither created nor moved
	Shell       *string
	LockedState *bool // whether the password is locked
}

// UserRemoval has the options for the removal of a user.
type UserRemoval struct {
	Purge bool // remove its home and mail as well
	Force bool // even while it is logged in
}

// ShadowChange has the new values for a password entry; nil leaves a value unchanged. Days of -1 empty a field.
type ShadowChange struct {
	Hash                                         *string // "" for an account without a password
	LastChange, Min, Max, Warn, Inactive, Expire *int
}

// NewGroup describes a group to create.
type NewGroup struct {
	Name      string
	GID       *int
	NonUnique bool
	System    bool
	Members   []string

	Expected Expected // PlanGroup treats them as existing; AddGroup does not
}

// GroupChange has the new values for a group; nil leaves a value unchanged.
type GroupChange struct {
	GID         *int
	NonUnique   bool
	Members     *[]string
	Add, Remove []string // single members
}

// Crontabs reads and writes the crontabs of users.
type Crontabs interface {
	// Allowed returns a *Skipped error if there are no crontabs to act on.
	Allowed(what string) error
	// Read returns the crontab of a user as the user wrote it, or "" if there is none.
	Read(ctx context.Context, user string) (string, error)
	// Write replaces a user's crontab. If cron cannot parse the text, Write returns its error.
	Write(ctx context.Context, user, text string) error
}

type (
	// User is a line of /etc/passwd.
	User = passwd.User
	// Group is a line of /etc/group.
	Group = passwd.Group
)
