package user

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// absent implements user.absent.
type absent struct {
	Name  string `sls:"name"`
	Purge bool   `sls:"purge"` // also remove the home directory and mail
	Force bool   `sls:"force"` // even if the user is logged in

	// Planned lists what earlier steps of a dry run would do to accounts.
	Planned *value.List `sls:"__planned__"`

	expected host.Expected // the accounts of Planned
}

func (a *absent) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	if err := h.Accounts.Allowed("user " + a.Name); err != nil {
		return module.Diff{}, err
	}
	a.expected = module.ExpectedAccounts(a.Planned)
	info, ok, err := Lookup(h, a.Name)
	if err != nil {
		return module.Diff{}, err
	}
	planned, expected, err := a.expected.User(h.Accounts, a.Name)
	if err != nil {
		return module.Diff{}, err
	}
	if !ok {
		info = Info{User: planned}
	}
	if !expected {
		return module.Diff{Comment: fmt.Sprintf("there is no user %s", a.Name)}, nil
	}
	changes := value.NewMap()
	goes, err := a.groupGoes(h, info)
	if err != nil {
		return module.Diff{}, err
	}
	if goes {
		changes.Set(a.Name+" group", "removed")
	}
	changes.Set(a.Name, "removed")
	comment := fmt.Sprintf("user %s would be removed", a.Name)
	return module.Diff{Changes: changes, Planned: value.NewMap(), Comment: comment, Warnings: []string{a.keeps(info)}}, nil
}

// keeps returns a warning about files that the removed user's uid still owns.
func (a *absent) keeps(info Info) string {
	which := "the files of user " + a.Name
	if a.Purge {
		which += " outside of " + info.Home
	}
	return fmt.Sprintf("%s keep uid %d and belong to the next user who gets it; find them with `find / -xdev -uid %d`, "+
		"and remove them or give them to another user", which, info.UID, info.UID)
}

// groupGoes reports whether userdel also removes the group with the user's name: if USERGROUPS_ENAB is set in
// login.defs, the group has no other members and, without force, is no other user's primary group.
func (a *absent) groupGoes(h *host.Host, info Info) (bool, error) {
	g, ok, err := a.expected.Group(h.Accounts, a.Name)
	if err != nil || !ok || g.GID != info.GID || len(without(g.Members, a.Name)) > 0 {
		return false, err
	}
	users, err := h.Accounts.AllUsers()
	if err != nil || !a.Force && slices.ContainsFunc(users, func(u host.User) bool {
		return u.GID == g.GID && u.Name != a.Name
	}) {
		return false, err
	}
	text, err := h.Files.ReadFile("/etc/login.defs")
	if err != nil {
		return false, nil // the default of USERGROUPS_ENAB is no
	}
	own := false
	for line := range strings.SplitSeq(string(text), "\n") {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "USERGROUPS_ENAB" {
			own = f[1] == "yes"
		}
	}
	return own, nil
}

func (a *absent) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	before, err := h.Accounts.GroupsOf(a.Name)
	if err != nil {
		return module.Report{}, err
	}
	err = h.Accounts.RemoveUser(ctx, a.Name, host.UserRemoval{Purge: a.Purge, Force: a.Force})
	_, there, errNow := h.Accounts.User(a.Name)
	if err := errors.Join(errNow, err); err != nil && (there || errNow != nil) {
		return module.Report{}, fmt.Errorf("removing user %s: %w", a.Name, err)
	}
	var warnings []string
	if err != nil { // the account was removed, but something remains, such as a home directory of another user
		warnings = []string{err.Error()}
	}
	changes := value.NewMap()
	for _, name := range before {
		if _, ok, err := h.Accounts.Group(name); err == nil && !ok {
			changes.Set(name+" group", "removed")
		}
	}
	changes.Set(a.Name, "removed")
	return module.Report{Changes: changes, Comment: fmt.Sprintf("user %s was removed", a.Name), Warnings: warnings}, nil
}
