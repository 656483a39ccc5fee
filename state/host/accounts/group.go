package accounts

import (
	"context"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// AddGroup adds a group with groupadd.
func (a *Accounts) AddGroup(ctx context.Context, n host.NewGroup) error {
	argv := []string{"groupadd"}
	if n.GID != nil {
		argv = append(argv, "-g", strconv.Itoa(*n.GID))
		if n.NonUnique {
			argv = append(argv, "-o")
		}
	}
	if n.System {
		argv = append(argv, "-r")
	}
	if err := a.run(ctx, a.onGroup(n.Name, append(argv, "--", n.Name)...)); err != nil {
		return err
	}
	if len(n.Members) == 0 {
		return nil
	}
	return a.ChangeGroup(ctx, n.Name, host.GroupChange{Members: &n.Members})
}

func (a *Accounts) onGroup(name string, argv ...string) tool {
	return tool{argv: argv, subjects: []host.Subject{groupSubject(name)}}
}

// ChangeGroup changes the ID and the members of a group.
func (a *Accounts) ChangeGroup(ctx context.Context, name string, c host.GroupChange) error {
	for _, argv := range groupCalls(name, c) {
		if err := a.run(ctx, a.onGroup(name, argv...)); err != nil {
			return err
		}
	}
	return nil
}

// groupCalls returns the commands that change a group.
func groupCalls(name string, c host.GroupChange) (calls [][]string) {
	if c.GID != nil {
		argv := []string{"groupmod", "-g", strconv.Itoa(*c.GID)}
		if c.NonUnique {
			argv = append(argv, "-o")
		}
		calls = append(calls, append(argv, "--", name))
	}
	if c.Members != nil {
		calls = append(calls, []string{"gpasswd", "-M", strings.Join(*c.Members, ","), "--", name})
	}
	for _, member := range c.Add {
		calls = append(calls, []string{"gpasswd", "-a", member, "--", name})
	}
	for _, member := range c.Remove {
		calls = append(calls, []string{"gpasswd", "-d", member, "--", name})
	}
	return calls
}

// RemoveGroup removes a group with groupdel.
func (a *Accounts) RemoveGroup(ctx context.Context, name string) error {
	return a.run(ctx, a.onGroup(name, "groupdel", "--", name))
}
