package user

import (
	"context"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// absent is user.absent.
type absent struct {
	Name  string `sls:"name"`
	Purge bool   `sls:"purge"` // its home and mail with it
	Force bool   `sls:"force"` // even while it is logged in
}

func (a *absent) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	if err := h.Accounts.Allowed("user " + a.Name); err != nil {
		return module.Diff{}, err
	}
	info, ok, err := Lookup(h, a.Name)
	if err != nil {
		return module.Diff{}, err
	}
	if !ok {
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
	return module.Diff{Changes: changes, Planned: value.NewMap(), Comment: fmt.Sprintf("user %s would be removed", a.Name)}, nil
}

// groupGoes tells whether userdel takes the group of the user's name along: where login.defs gives
// every user one, and nobody else is in it.
func (a *absent) groupGoes(h *host.Host, info Info) (bool, error) {
	g, ok, err := h.Accounts.Group(a.Name)
	if err != nil || !ok || g.GID != info.GID || len(without(g.Members, a.Name)) > 0 {
		return false, err
	}
	text, err := h.Files.ReadFile("/etc/login.defs")
	if err != nil {
		return false, nil // no settings: no groups of users' own
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
	if err := h.Accounts.RemoveUser(ctx, a.Name, host.UserRemoval{Purge: a.Purge, Force: a.Force}); err != nil {
		return module.Report{}, fmt.Errorf("removing user %s: %w", a.Name, err)
	}
	changes := value.NewMap()
	for _, name := range before {
		if _, ok, err := h.Accounts.Group(name); err == nil && !ok {
			changes.Set(name+" group", "removed")
		}
	}
	changes.Set(a.Name, "removed")
	return module.Report{Changes: changes, Comment: fmt.Sprintf("user %s was removed", a.Name)}, nil
}
