package statetest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"time"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// Shadow returns a user's shadow line.
func (a *Accounts) Shadow(user string) (host.Shadow, bool, error) {
	return pick(a.Shadows, func(s host.Shadow) bool { return s.Name == user })
}

// PlanUser assigns a new user the ID after those in use, from 1000 on or, for system accounts, below.
func (a *Accounts) PlanUser(n host.NewUser) (host.User, []string, error) {
	u := host.User{Name: n.Name, Password: "x", Gecos: n.Gecos, Home: n.Home, Shell: n.Shell}
	if u.Home == "" {
		u.Home = "/home/" + n.Name
	}
	if u.Shell == "" {
		u.Shell = "/bin/sh"
	}
	u.UID = unused(n.System, func(id int) bool { _, ok, _ := a.UserByID(id); return ok })
	if n.UID != nil {
		u.UID = *n.UID
		if owner, taken, _ := a.UserByID(u.UID); taken && !n.NonUnique {
			return u, nil, fmt.Errorf("uid %d is taken by user %s", u.UID, owner.Name)
		}
	}
	g, err := a.ownGroup(n, u.UID)
	if err != nil {
		return u, nil, err
	}
	u.GID = g.GID
	groups := append([]string{g.Name}, n.Groups...)
	slices.Sort(groups)
	return u, slices.Compact(groups), nil
}

func (a *Accounts) ownGroup(n host.NewUser, uid int) (host.Group, error) {
	name := n.Group
	if name == "" && n.OwnGroup != nil && !*n.OwnGroup {
		name = "users"
	}
	if name == "" {
		if _, taken, _ := a.Group(n.Name); taken {
			return host.Group{}, fmt.Errorf("a group %s exists already", n.Name)
		}
		if _, taken, _ := a.GroupByID(uid); taken {
			return a.PlanGroup(host.NewGroup{Name: n.Name, System: n.System})
		}
		return a.PlanGroup(host.NewGroup{Name: n.Name, GID: &uid})
	}
	g, ok, _ := a.Group(name)
	if gid, err := strconv.Atoi(name); !ok && err == nil {
		g, ok, _ = a.GroupByID(gid)
	}
	if !ok {
		return g, fmt.Errorf("group %s does not exist", name)
	}
	return g, nil
}

func unused(system bool, taken func(int) bool) int {
	id, step := 1000, 1
	if system {
		id, step = 999, -1
	}
	for taken(id) {
		id += step
	}
	return id
}

// PlanGroup assigns the ID of a new group as PlanUser does.
func (a *Accounts) PlanGroup(n host.NewGroup) (host.Group, error) {
	g := host.Group{Name: n.Name, Password: "x", Members: n.Members}
	g.GID = unused(n.System, func(id int) bool { _, ok, _ := a.GroupByID(id); return ok })
	if n.GID == nil {
		return g, nil
	}
	g.GID = *n.GID
	if owner, taken, _ := a.GroupByID(g.GID); taken && !n.NonUnique {
		return g, fmt.Errorf("gid %d is taken by group %s", g.GID, owner.Name)
	}
	return g, nil
}

// AddUser creates a user, its own group if it gets one, and its home.
func (a *Accounts) AddUser(_ context.Context, n host.NewUser) error {
	if err := a.Allowed("useradd"); err != nil {
		return err
	}
	u, _, err := a.PlanUser(n)
	if err != nil {
		return err
	}
	if _, ok, _ := a.GroupByID(u.GID); !ok {
		a.Groups = append(a.Groups, host.Group{Name: n.Name, Password: "x", GID: u.GID})
	}
	a.Users = append(a.Users, u)
	a.Shadows = append(a.Shadows, host.Shadow{Name: n.Name, Hash: "!", LastChange: 20000, Max: 99999, Warn: 7,
		Inactive: -1, Expire: -1})
	a.join(n.Name, n.Groups, true)
	if !n.CreateHome {
		return nil
	}
	if err := a.Files.Mkdir(u.Home, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return a.Files.Chown(u.Home, u.UID, u.GID)
}

// join adds a user to groups. Unless keep is set, it removes the user from all other groups.
func (a *Accounts) join(user string, groups []string, keep bool) {
	for i := range a.Groups {
		g := &a.Groups[i]
		in, wanted := slices.Contains(g.Members, user), slices.Contains(groups, g.Name)
		if wanted && !in {
			g.Members = append(slices.Clone(g.Members), user)
		}
		if in && !wanted && !keep {
			g.Members = slices.DeleteFunc(slices.Clone(g.Members), func(m string) bool { return m == user })
		}
	}
}

// ChangeUser changes a user.
func (a *Accounts) ChangeUser(_ context.Context, name string, c host.UserChange) error {
	if err := a.Allowed("usermod"); err != nil {
		return err
	}
	i := slices.IndexFunc(a.Users, func(u host.User) bool { return u.Name == name })
	if i < 0 {
		return fmt.Errorf("user %s does not exist", name)
	}
	u := &a.Users[i]
	if c.Group != nil {
		g, err := a.ownGroup(host.NewUser{Group: *c.Group}, 0)
		if err != nil {
			return err
		}
		u.GID = g.GID
	}
	change(&u.UID, c.UID)
	change(&u.Gecos, c.Gecos)
	change(&u.Home, c.Home)
	change(&u.Shell, c.Shell)
	if c.Groups != nil {
		a.join(name, *c.Groups, c.KeepGroups)
	}
	if c.LockedState != nil {
		a.lock(name, *c.LockedState)
	}
	return nil
}

func change[T any](field *T, wanted *T) {
	if wanted != nil {
		*field = *wanted
	}
}

func (a *Accounts) lock(name string, locked bool) {
	for i := range a.Shadows {
		s := &a.Shadows[i]
		switch {
		case s.Name != name:
		case locked:
			s.Hash = "!" + s.Hash
		case len(s.Hash) > 1:
			s.Hash = s.Hash[1:]
		}
	}
}

// RemoveUser removes a user, its own group and, with Purge, its home.
func (a *Accounts) RemoveUser(_ context.Context, name string, r host.UserRemoval) error {
	if err := a.Allowed("userdel"); err != nil {
		return err
	}
	u, _, _ := a.User(name)
	a.Users = slices.DeleteFunc(a.Users, func(u host.User) bool { return u.Name == name })
	a.Shadows = slices.DeleteFunc(a.Shadows, func(s host.Shadow) bool { return s.Name == name })
	a.join(name, nil, false)
	a.Groups = slices.DeleteFunc(a.Groups, func(g host.Group) bool {
		return g.Name == name && g.GID == u.GID && len(g.Members) == 0
	})
	if r.Purge {
		return a.Files.RemoveAll(u.Home)
	}
	return nil
}

// SetShadow changes a password and its expiry.
func (a *Accounts) SetShadow(_ context.Context, name string, c host.ShadowChange) error {
	if err := a.Allowed("chage"); err != nil {
		return err
	}
	i := slices.IndexFunc(a.Shadows, func(s host.Shadow) bool { return s.Name == name })
	if i < 0 {
		return fmt.Errorf("user %s has no shadow line", name)
	}
	s := &a.Shadows[i]
	change(&s.Hash, c.Hash)
	if c.Hash != nil && *c.Hash != "" {
		s.LastChange = int(time.Now().Unix() / (24 * 60 * 60))
	}
	change(&s.LastChange, c.LastChange)
	change(&s.Min, c.Min)
	change(&s.Max, c.Max)
	change(&s.Warn, c.Warn)
	change(&s.Inactive, c.Inactive)
	change(&s.Expire, c.Expire)
	return nil
}

// AddGroup creates a group.
func (a *Accounts) AddGroup(_ context.Context, n host.NewGroup) error {
	if err := a.Allowed("groupadd"); err != nil {
		return err
	}
	g, err := a.PlanGroup(n)
	if err != nil {
		return err
	}
	members := g.Members
	g.Members = nil
	a.Groups = append(a.Groups, g)
	return a.enlist(n.Name, members)
}

// ChangeGroup changes a group.
func (a *Accounts) ChangeGroup(_ context.Context, name string, c host.GroupChange) error {
	if err := a.Allowed("groupmod"); err != nil {
		return err
	}
	i := slices.IndexFunc(a.Groups, func(g host.Group) bool { return g.Name == name })
	if i < 0 {
		return fmt.Errorf("group %s does not exist", name)
	}
	change(&a.Groups[i].GID, c.GID)
	if c.Members != nil {
		a.Groups[i].Members = nil
		if err := a.enlist(name, *c.Members); err != nil {
			return err
		}
	}
	if err := a.enlist(name, c.Add); err != nil {
		return err
	}
	a.Groups[i].Members = slices.DeleteFunc(slices.Clone(a.Groups[i].Members), func(m string) bool {
		return slices.Contains(c.Remove, m)
	})
	return nil
}

// enlist adds members, which must exist, to a group.
func (a *Accounts) enlist(group string, members []string) error {
	i := slices.IndexFunc(a.Groups, func(g host.Group) bool { return g.Name == group })
	for _, m := range members {
		if _, ok, _ := a.User(m); !ok {
			return fmt.Errorf("user %s does not exist", m)
		}
		a.Groups[i].Members = append(slices.Clone(a.Groups[i].Members), m)
	}
	return nil
}

// RemoveGroup removes a group that is no user's primary group.
func (a *Accounts) RemoveGroup(_ context.Context, name string) error {
	if err := a.Allowed("groupdel"); err != nil {
		return err
	}
	g, _, _ := a.Group(name)
	if u, ok, _ := pick(a.Users, func(u host.User) bool { return u.GID == g.GID }); ok {
		return fmt.Errorf("group %s is the own group of user %s", name, u.Name)
	}
	a.Groups = slices.DeleteFunc(a.Groups, func(g host.Group) bool { return g.Name == name })
	return nil
}
