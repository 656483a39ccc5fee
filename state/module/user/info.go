package user

import (
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Info is a user in the form of Salt's user.info.
type Info struct {
	host.User
	Groups []string // names of all groups, including the primary group
}

// Lookup returns a user by name.
func Lookup(h *host.Host, name string) (Info, bool, error) {
	u, ok, err := h.Accounts.User(name)
	if err != nil || !ok {
		return Info{}, false, err
	}
	groups, err := h.Accounts.GroupsOf(name)
	return Info{User: u, Groups: groups}, err == nil, err
}

// Map returns the user in the form that Salt's user.info returns.
func (i Info) Map() *value.Map {
	m := value.NewMap("gid", i.GID, "groups", value.Strings(i.Groups...), "home", i.Home,
		"name", i.Name, "passwd", i.Password,
		"shell", i.Shell, "uid", i.UID)
	fields := parseGecos(i.Gecos)
	for n, name := range gecosNames() {
		m.Set(name, fields[n])
	}
	return m
}

// gecos holds the fields of the comment of an account.
type gecos [5]string

func gecosNames() [5]string {
	return [5]string{"fullname", "roomnumber", "workphone", "homephone", "other"}
}

func parseGecos(text string) (g gecos) {
	copy(g[:], strings.SplitN(text, ",", len(g)))
	return g
}

func (g gecos) String() string { return strings.TrimRight(strings.Join(g[:], ","), ",") }

// shadowMap returns the shadow entry in the form of Salt's shadow.info.
func shadowMap(s host.Shadow) *value.Map {
	return value.NewMap("passwd", s.Hash, "lstchg", s.LastChange, "min", s.Min, "max", s.Max,
		"warn", s.Warn, "inact", s.Inactive,
		"expire", s.Expire)
}

// difference returns the entries of after that differ from before.
func difference(before, after *value.Map) *value.Map {
	changes := value.NewMap()
	for _, name := range after.Names() {
		if v := after.Value(name); !value.Equal(before.Value(name), v) {
			changes.Set(name, v)
		}
	}
	return changes
}
