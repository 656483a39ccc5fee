package host

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
}

// UserChange is what shall be different about a user; nil leaves a thing as it is.
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

// ShadowChange is what shall be different about a password. Days of -1 empty a field.
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
}

// GroupChange is what shall be different about a group; nil leaves a thing as it is.
type GroupChange struct {
	GID         *int
	NonUnique   bool
	Members     *[]string
	Add, Remove []string // single members
}
