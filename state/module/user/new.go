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

// newUser is what the host's tools are to make.
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
		// A group that is to have the user as a member cannot be made for it once more.
		n.Group = p.Name
	}
	return n
}

// checkNew says how a new account would look. What stands in its way is only a warning, as an
// earlier state of the same run may yet clear it; if none does, Apply fails with it.
func (p *present) checkNew(h *host.Host) module.Diff {
	d := module.Diff{Planned: value.NewMap(), Comment: fmt.Sprintf("user %s would be made", p.Name),
		Warnings: p.warnings()}
	_, info, err := p.plan(h)
	if err != nil {
		d.Changes = value.NewMap("name", p.Name)
		d.Lacks = append(d.Lacks, err)
		return d
	}
	d.Changes = p.made(info)
	left, err := leftBy(h, info.User)
	if err != nil {
		d.Lacks = append(d.Lacks, err)
	}
	d.Warnings = append(d.Warnings, left...)
	return d
}

// plan is the new account as the host would make it. A member of its own group it need not be.
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
	names, err = had(h, names...)
	return n, Info{User: planned, Groups: names}, err
}

// made is how a new account is reported.
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
	for _, f := range []struct {
		name string
		days *int
	}{{"mindays", p.MinDays}, {"maxdays", p.MaxDays}, {"inactdays", p.InactDays}, {"warndays", p.WarnDays},
		{"expire", p.Expire}} {
		if f.days != nil && *f.days != 0 {
			m.Set(f.name, *f.days)
		}
	}
	return m
}

func (p *present) applyNew(ctx context.Context, h *host.Host) (module.Report, error) {
	n, planned, err := p.plan(h)
	if err != nil {
		return module.Report{}, diag.WithHint(fmt.Errorf("making user %s: %w", p.Name, err), "%s", diag.HintOf(err))
	}
	// useradd follows a path by its name. Below a directory that another user controls the home is made by the host's
	// own walk instead, as for an account that is there.
	if n.CreateHome && h.Steady(planned.User.Home) != nil {
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
	// What useradd has no options for is a change to the new account.
	rest, err := p.compare(h, info)
	if err != nil || len(rest.words) == 0 {
		return report, err
	}
	if err := p.carryOut(ctx, h, rest); err != nil {
		return report, err
	}
	return report, p.settled(h, info)
}
