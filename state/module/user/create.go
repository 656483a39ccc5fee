package user

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/owned"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// newUser returns the declared account for the tools of the host.
func (p *present) newUser() host.NewUser {
	n := host.NewUser{
		Name: p.Name, UID: p.UID, OwnGroup: p.UserGroup, Groups: p.memberships(),
		Gecos: p.gecosOf(gecos{}).String(), Home: p.Home,
		CreateHome: p.CreateHome, Shell: p.Shell, NonUnique: !p.Unique, System: p.System, NoLog: p.NoLogInit,
		Expected: p.expected,
	}
	switch {
	case p.GID != nil:
		n.Group = *p.GID
	case p.GIDFromName, p.UserGroup == nil && slices.Contains(n.Groups, p.Name):
		// useradd cannot create a group for the user that is also in its list of groups.
		n.Group = p.Name
	}
	return n
}

// checkNew predicts the creation of an account. An error of the prediction becomes a missing prerequisite, since an
// earlier state of the same run may remove its cause. If none does, Apply fails with the same error.
func (p *present) checkNew(h *host.Host) module.Diff {
	d := module.Diff{Planned: value.NewMap(), Comment: fmt.Sprintf("user %s would be made", p.Name),
		Warnings: p.warnings()}
	_, info, err := p.plan(h)
	if err != nil {
		d.Changes = value.NewMap("name", p.Name)
		d.Missing = append(d.Missing, err)
		return d
	}
	d.Changes = p.made(info)
	left, err := leftovers(h, info.User)
	if err != nil {
		d.Missing = append(d.Missing, err)
	}
	d.Warnings = append(d.Warnings, left...)
	return d
}

// plan predicts the account that the host would create. It removes the primary group from the list of
// memberships.
func (p *present) plan(h *host.Host) (host.NewUser, Info, error) {
	n := p.newUser()
	planned, names, err := h.Accounts.PlanUser(n)
	if err != nil {
		return n, Info{}, err
	}
	if own, ok, err := h.Accounts.GroupByID(planned.GID); err == nil && ok {
		n.Groups = without(n.Groups, own.Name)
	}
	for _, own := range p.expected.Groups {
		if own.GID == planned.GID {
			n.Groups = without(n.Groups, own.Name)
		}
	}
	names, err = withSameGIDs(h, names...)
	return n, Info{User: planned, Groups: names}, err
}

// made returns the changes for a new account.
func (p *present) made(info Info) *value.Map {
	m := info.Map()
	if !p.CreateHome {
		m.Set("home", "")
	}
	switch {
	case p.EmptyPassword:
		m.Set("password", "")
	case p.Password != "":
		m.Set("password", redacted)
	}
	if p.Date != nil {
		m.Set("date", *p.Date)
	}
	p.noteAging(m)
	return m
}

// noteAging adds the declared limits of the password's age to m, except zeros.
func (p *present) noteAging(m *value.Map) {
	for _, f := range []struct {
		name string
		days *int
	}{{"mindays", p.MinDays}, {"maxdays", p.MaxDays}, {"inactdays", p.InactDays}, {"warndays", p.WarnDays},
		{"expire", p.Expire}} {
		if f.days != nil && *f.days != 0 {
			m.Set(f.name, *f.days)
		}
	}
}

func (p *present) applyNew(ctx context.Context, h *host.Host) (module.Report, error) {
	n, planned, err := p.plan(h)
	if err != nil {
		return module.Report{}, diag.KeepHint(fmt.Errorf("making user %s: %w", p.Name, err), diag.HintOf(err))
	}
	// useradd follows links in a path. Below a directory that another user controls, the host package therefore
	// creates the home directory itself, as for an existing account.
	if n.CreateHome && h.CheckPath(planned.User.Home) != nil {
		if _, err := owned.IsDirectory(h, planned.User.Home); err != nil {
			return module.Report{}, fmt.Errorf("making the home of %s: %w", p.Name, err)
		}
		n.CreateHome = false
	}
	err = h.Accounts.AddUser(ctx, n)
	info, there, errInfo := Lookup(h, p.Name)
	if err == nil {
		err = errInfo
	}
	if err == nil && !there {
		err = errors.New("useradd ended with 0, and there is no such account")
	}
	if err != nil {
		report := module.Report{}
		if there {
			report.Changes = info.Map()
		}
		return report, fmt.Errorf("making user %s: %w", p.Name, err)
	}
	report := module.Report{Changes: p.made(info), Comment: fmt.Sprintf("user %s was made", p.Name)}
	// Properties for which useradd has no options are changed afterwards.
	rest, err := p.compare(h, info)
	if err != nil || len(rest.words) == 0 {
		return report, err
	}
	if err := p.carryOut(ctx, h, rest); err != nil {
		return report, err
	}
	return report, p.settled(h, info)
}
