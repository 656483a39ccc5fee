package accounts

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// The choices of useradd and groupadd follow from the existing accounts and from two files of settings. This file makes
// the same choices, so that a dry run can name the ID that a new account will get.

// settings holds the values of login.defs or of useradd's defaults.
type settings map[string]string

func (a *Accounts) settings(path, separators string) (settings, error) {
	text, err := a.lines(path)
	if err != nil {
		return nil, err
	}
	s := settings{}
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		if i := strings.IndexAny(line, separators); i > 0 && line[0] != '#' {
			s[line[:i]] = strings.Trim(strings.TrimSpace(line[i:]), `="`)
		}
	}
	return s, nil
}

func (a *Accounts) loginDefs() (settings, error) { return a.settings("/etc/login.defs", " \t") }

func (s settings) number(name string, fallback int) int {
	if n, err := strconv.ParseInt(s[name], 0, 32); err == nil {
		return int(n)
	}
	return fallback
}

// span is a range of IDs, both ends included.
type span struct{ min, max int }

// ids returns the range of a kind of ID, UID or GID.
func (s settings) ids(kind string, system bool) span {
	least := s.number(kind+"_MIN", 1000)
	if system {
		return span{max(1, s.number("SYS_"+kind+"_MIN", 101)), s.number("SYS_"+kind+"_MAX", least-1)}
	}
	return span{least, s.number(kind+"_MAX", 60000)}
}

// free chooses an ID: for ordinary accounts the one after the highest in use, for system accounts the one before the
// lowest, and if that end of the range is in use, the first gap from the other end.
func free[V any](r span, used map[int]V, system bool) (int, error) {
	above, below := r.min, r.max
	for id := range used {
		if r.min <= id && id <= r.max {
			above, below = max(above, id+1), min(below, id-1)
		}
	}
	if system && below >= r.min {
		return below, nil
	}
	if !system && above <= r.max {
		return above, nil
	}
	return gap(r, used, system)
}

func gap[V any](r span, used map[int]V, downwards bool) (int, error) {
	for i := range max(0, r.max-r.min+1) {
		id := r.min + i
		if downwards {
			id = r.max - i
		}
		if _, taken := used[id]; !taken {
			return id, nil
		}
	}
	return 0, diag.Account.Hint(fmt.Errorf("no ID between %d and %d is free", r.min, r.max),
		"widen the range in /etc/login.defs")
}

// PlanUser returns the account that AddUser would add, with its ID, and the groups that it would be in.
func (a *Accounts) PlanUser(n host.NewUser) (host.User, []string, error) {
	t, err := a.read()
	if err != nil {
		return host.User{}, nil, err
	}
	t = t.with(n.Expected)
	login, errL := a.loginDefs()
	defaults, errD := a.settings("/etc/default/useradd", "=")
	if err := errors.Join(errL, errD); err != nil {
		return host.User{}, nil, err
	}
	u := host.User{Name: n.Name, Password: "x", Gecos: n.Gecos, Home: n.Home, Shell: n.Shell}
	if u.Home == "" {
		u.Home = strings.TrimRight(or(defaults["HOME"], "/home"), "/") + "/" + n.Name
	}
	if u.Shell == "" {
		u.Shell = or(defaults["SHELL"], "/bin/sh")
	}
	if u.UID, err = planUID(t, login, n); err != nil {
		return u, nil, err
	}
	group, err := a.planOwnGroup(t, login, defaults, n, u.UID)
	if err != nil {
		return u, nil, err
	}
	u.GID = group.GID
	names := append([]string{group.Name}, n.Groups...)
	names = append(names, t.byGID[group.GID]...)
	slices.Sort(names)
	return u, slices.Compact(names), nil
}

func or(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

func planUID(t *tables, login settings, n host.NewUser) (int, error) {
	if n.UID == nil {
		return free(login.ids("UID", n.System), t.usersByID, n.System)
	}
	if owner, taken := t.usersByID[*n.UID]; taken && !n.NonUnique {
		return 0, diag.Account.Hint(fmt.Errorf("uid %d is taken by user %s", *n.UID, owner.Name),
			"choose another uid, or set unique: False")
	}
	return *n.UID, nil
}

// planOwnGroup returns the primary group of a new user: the named one, a new one with the user's name, or the default
// for every user.
func (a *Accounts) planOwnGroup(t *tables, login, defaults settings, n host.NewUser, uid int) (host.Group, error) {
	own := login["USERGROUPS_ENAB"] == "yes"
	if n.OwnGroup != nil {
		own = *n.OwnGroup
	}
	switch {
	case n.Group != "":
		return a.groupNamed(t, n.Group)
	case !own:
		return a.groupNamed(t, or(defaults["GROUP"], "100"))
	}
	if _, taken := t.groups[n.Name]; taken {
		return host.Group{}, diag.Account.Hint(fmt.Errorf("a group %s exists already", n.Name),
			"set gid: %s to take it as the user's own", n.Name)
	}
	return planNewGroup(t, login, n, uid)
}

// planNewGroup returns a new group with the name of a user. It gets the ID of the user if that is free; a system group
// may also have an ID below its range.
func planNewGroup(t *tables, login settings, n host.NewUser, uid int) (host.Group, error) {
	ids := login.ids("GID", n.System)
	low := ids.min
	if n.System {
		low = 1
	}
	if _, taken := t.groupsByID[uid]; !taken && low <= uid && uid <= ids.max {
		return host.Group{Name: n.Name, GID: uid}, nil
	}
	gid, err := free(ids, t.groupsByID, n.System)
	return host.Group{Name: n.Name, GID: gid}, err
}

// with returns the tables as they would be after the earlier steps of a dry run.
func (t *tables) with(e host.Expected) *tables {
	if len(e.Users)+len(e.Groups)+len(e.GoneUsers)+len(e.GoneGroups) == 0 {
		return t
	}
	users := structsort.Without(t.allUsers, func(u host.User) bool {
		return slices.Contains(e.GoneUsers, u.Name)
	})
	groups := structsort.Without(t.allGroups, func(g host.Group) bool {
		return slices.Contains(e.GoneGroups, g.Name)
	})
	more := index(append(users, e.Users...), append(groups, e.Groups...))
	more.elsewhere = t.elsewhere
	return more
}

// groupNamed finds a group by its name or ID, as the option -g of useradd does.
func (a *Accounts) groupNamed(t *tables, name string) (host.Group, error) {
	if g, ok := t.groups[name]; ok {
		return g, nil
	}
	gid, numeric := strconv.Atoi(name)
	if g, ok := t.groupsByID[gid]; ok && numeric == nil {
		return g, nil
	}
	g, ok, err := a.Group(name)
	if !ok && err == nil && numeric == nil {
		g, ok, err = a.GroupByID(gid)
	}
	if err == nil && !ok {
		err = host.WithMissing(diag.Prerequisite.Hint(fmt.Errorf("group %s does not exist", name),
			"make it in a group.present state that this one requires"), host.AGroup, name)
	}
	return g, err
}

// PlanGroup returns the group that AddGroup would add, with its ID.
func (a *Accounts) PlanGroup(n host.NewGroup) (host.Group, error) {
	t, err := a.read()
	if err != nil {
		return host.Group{}, err
	}
	t = t.with(n.Expected)
	g := host.Group{Name: n.Name, Password: "x", Members: n.Members}
	if n.GID == nil {
		login, err := a.loginDefs()
		if err != nil {
			return g, err
		}
		g.GID, err = free(login.ids("GID", n.System), t.groupsByID, n.System)
		return g, err
	}
	g.GID = *n.GID
	if owner, taken := t.groupsByID[g.GID]; taken && !n.NonUnique {
		return g, diag.Account.Hint(fmt.Errorf("gid %d is taken by group %s", g.GID, owner.Name),
			"choose another gid, or set non_unique: True")
	}
	return g, nil
}
