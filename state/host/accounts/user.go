package accounts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// AddUser adds an account with useradd.
func (a *Accounts) AddUser(ctx context.Context, n host.NewUser) error {
	argv := []string{"useradd"}
	option := func(wanted bool, words ...string) {
		if wanted {
			argv = append(argv, words...)
		}
	}
	if n.UID != nil {
		option(true, "-u", strconv.Itoa(*n.UID))
	}
	own := n.OwnGroup != nil && *n.OwnGroup
	option(n.Group != "", "-g", n.Group)
	option(n.Group == "" && own, "-U")
	option(n.OwnGroup != nil && !own, "-N")
	option(len(n.Groups) > 0, "-G", strings.Join(n.Groups, ","))
	option(n.Gecos != "", "-c", n.Gecos)
	option(n.Home != "", "-d", n.Home)
	option(n.CreateHome, "-m")
	option(!n.CreateHome, "-M")
	option(n.Shell != "", "-s", n.Shell)
	option(n.NonUnique, "-o")
	option(n.System, "-r")
	option(n.NoLog, "-l")
	// useradd may also create a group with the user's name, and a mailbox.
	subjects := memberships([]host.Subject{userSubject(n.Name), groupSubject(n.Name),
		{Kind: host.KindFile, Name: a.mailbox(n.Name)}}, n.Groups)
	var paths []string
	if planned, _, err := a.PlanUser(n); err == nil {
		subjects = append(subjects, host.Subject{Kind: host.KindTree, Name: planned.Home})
		if n.CreateHome {
			paths = append(paths, planned.Home)
		}
	}
	return a.run(ctx, tool{argv: append(argv, "--", n.Name), subjects: subjects, paths: paths})
}

// memberships adds the groups whose members a change affects.
func memberships(subjects []host.Subject, groups []string) []host.Subject {
	for _, g := range groups {
		subjects = append(subjects, groupSubject(g))
	}
	return subjects
}

// ChangeUser changes an account with usermod.
func (a *Accounts) ChangeUser(ctx context.Context, name string, c host.UserChange) error {
	argv := []string{"usermod"}
	option := func(flag string, v *string) {
		if v != nil {
			argv = append(argv, flag, *v)
		}
	}
	if c.UID != nil {
		argv = append(argv, "-u", strconv.Itoa(*c.UID))
		if c.NonUnique {
			argv = append(argv, "-o")
		}
	}
	option("-g", c.Group)
	option("-c", c.Gecos)
	option("-d", c.Home)
	option("-s", c.Shell)
	subjects := []host.Subject{userSubject(name)}
	paths, err := a.reowned(name, c)
	if err != nil {
		return err
	}
	if c.Groups != nil {
		if c.KeepGroups {
			argv = append(argv, "-a")
		}
		argv = append(argv, "-G", strings.Join(*c.Groups, ","))
		old, err := a.GroupsOf(name)
		if err != nil {
			return err
		}
		subjects = memberships(subjects, append(old, *c.Groups...))
	}
	if c.LockedState != nil {
		argv = append(argv, map[bool]string{true: "-L", false: "-U"}[*c.LockedState])
	}
	if len(argv) == 1 {
		return nil
	}
	return a.run(ctx, tool{argv: append(argv, "--", name), subjects: subjects, paths: paths})
}

// reowned returns the directories in which usermod changes the owner or group of the user's files.
func (a *Accounts) reowned(name string, c host.UserChange) ([]string, error) {
	if c.UID == nil && c.Group == nil {
		return nil, nil
	}
	u, ok, err := a.User(name)
	if err != nil || !ok || u.Home == "" {
		return nil, err
	}
	homes := []string{u.Home}
	if c.Home != nil {
		homes = append(homes, *c.Home)
	}
	return homes, nil
}

// mailbox returns the path of the mailbox of a user.
func (a *Accounts) mailbox(name string) string {
	login, err := a.loginDefs()
	if err != nil {
		login = settings{}
	}
	return or(login["MAIL_DIR"], "/var/mail") + "/" + name
}

// homeLeft is userdel's exit code if it could not remove the home or the mailbox. Some versions also return it for a
// missing mailbox.
const homeLeft = 12

// RemoveUser removes an account with userdel.
func (a *Accounts) RemoveUser(ctx context.Context, name string, r host.UserRemoval) error {
	u, ok, err := a.User(name)
	if err != nil || !ok {
		return err
	}
	groups, err := a.GroupsOf(name)
	if err != nil {
		return err
	}
	var paths []string
	argv, subjects := []string{"userdel"}, memberships([]host.Subject{userSubject(name), groupSubject(name)}, groups)
	if r.Purge {
		argv, subjects = append(argv, "-r"), append(subjects, host.Subject{Kind: host.KindTree, Name: u.Home},
			host.Subject{Kind: host.KindFile, Name: a.mailbox(name)})
		if u.Home != "" {
			paths = append(paths, u.Home)
		}
	}
	if r.Force {
		argv = append(argv, "-f")
	}
	err = a.run(ctx, tool{argv: append(argv, "--", name), subjects: subjects, paths: paths})
	if exited(err, homeLeft) {
		if _, left := a.files.Lstat(u.Home); errors.Is(left, fs.ErrNotExist) {
			return nil
		}
	}
	return err
}

// SetShadow changes the password of a user and its expiry.
func (a *Accounts) SetShadow(ctx context.Context, name string, c host.ShadowChange) error {
	if c.Hash != nil {
		if err := a.setHash(ctx, name, *c.Hash); err != nil {
			return err
		}
	}
	argv := []string{"chage"}
	for _, field := range []struct {
		flag string
		days *int
	}{{"-d", c.LastChange}, {"-m", c.Min}, {"-M", c.Max}, {"-W", c.Warn}, {"-I", c.Inactive}, {"-E", c.Expire}} {
		if field.days != nil {
			argv = append(argv, field.flag, strconv.Itoa(*field.days))
		}
	}
	if len(argv) == 1 {
		return nil
	}
	return a.run(ctx, tool{argv: append(argv, "--", name), subjects: []host.Subject{userSubject(name)}})
}

// setHash passes the hash of a password through a pipe, so that other processes cannot read it.
func (a *Accounts) setHash(ctx context.Context, name, hash string) error {
	t := tool{argv: []string{"passwd", "-d", "--", name}, subjects: []host.Subject{userSubject(name)}}
	if strings.ContainsAny(name+hash, ":\n\r") {
		return fmt.Errorf("the password of %s has a character that /etc/shadow cannot hold", name)
	}
	if hash != "" {
		t.argv, t.stdin = []string{"chpasswd", "-e"}, name+":"+hash+"\n"
	}
	return a.run(ctx, t)
}
