package group

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// present implements group.present.
type present struct {
	Name      string   `sls:"name"`
	GID       *int     `sls:"gid"`
	System    bool     `sls:"system"`
	Members   []string `sls:"members"` // the complete list; nil leaves it unchanged
	AddUsers  []string `sls:"addusers"`
	DelUsers  []string `sls:"delusers"`
	NonUnique bool     `sls:"non_unique"`

	// Planned lists what earlier steps of a dry run would do to accounts.
	Planned *value.List `sls:"__planned__"`

	change *host.GroupChange // set by Check for an existing group
}

func (p *present) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	if err := h.Accounts.Allowed("group " + p.Name); err != nil {
		return module.Diff{}, err
	}
	if err := p.Valid(); err != nil {
		return module.Diff{}, err
	}
	g, ok, err := module.ExpectedAccounts(p.Planned).Group(h.Accounts, p.Name)
	if err != nil {
		return module.Diff{}, err
	}
	if !ok {
		return p.checkNew(h)
	}
	change, differs := p.compare(g)
	if differs.Len() == 0 {
		return module.Diff{Comment: fmt.Sprintf("group %s is as declared", p.Name)}, nil
	}
	p.change = &change
	lacks, err := p.lacks(h, slices.Concat(change.Add, membersOf(change)))
	if err != nil {
		return module.Diff{}, err
	}
	return module.Diff{
		Changes: final(), Planned: value.NewMap(), Missing: lacks,
		Comment: fmt.Sprintf("group %s would change: %s", p.Name, strings.Join(differs.Names(), ", ")),
	}, nil
}

// final returns the only changes that Salt reports for a changed group.
func final() *value.Map { return value.NewMap("Final", "All changes applied successfully") }

func (p *present) Valid() error {
	if p.Members != nil && (p.AddUsers != nil || p.DelUsers != nil) {
		return diag.Contradiction.Hint(errors.New("members is the complete list, which contradicts addusers and delusers"),
			"use members alone, or the other two")
	}
	for _, name := range p.AddUsers {
		if slices.Contains(p.DelUsers, name) {
			return diag.Contradiction.Hint(fmt.Errorf("user %s is to be added and removed at once", name),
				"take it out of addusers or delusers")
		}
	}
	return nil
}

// compare returns the difference between a group and the declared one, and the differing fields under Salt's
// names.
func (p *present) compare(g host.Group) (change host.GroupChange, differs *value.Map) {
	differs = value.NewMap()
	if p.GID != nil && *p.GID != 0 && *p.GID != g.GID {
		change.GID, change.NonUnique = p.GID, p.NonUnique
		differs.Set("gid", *p.GID)
	}
	if p.Members != nil && !sameNames(p.Members, g.Members) {
		change.Members = &p.Members
		differs.Set("members", value.Strings(p.Members...))
	}
	for _, name := range p.AddUsers {
		if !slices.Contains(g.Members, name) {
			change.Add = append(change.Add, name)
		}
	}
	for _, name := range p.DelUsers {
		if slices.Contains(g.Members, name) {
			change.Remove = append(change.Remove, name)
		}
	}
	if len(change.Add) > 0 {
		differs.Set("addusers", value.Strings(change.Add...))
	}
	if len(change.Remove) > 0 {
		differs.Set("delusers", value.Strings(change.Remove...))
	}
	return change, differs
}

func sameNames(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(slices.Compact(a), slices.Compact(b))
}

func (p *present) newGroup() host.NewGroup {
	members := p.Members
	if len(p.AddUsers) > 0 {
		members = p.AddUsers
	}
	return host.NewGroup{Name: p.Name, GID: p.GID, NonUnique: p.NonUnique, System: p.System, Members: members}
}

// checkNew predicts the creation of a group. An error of the prediction becomes a missing prerequisite, since an
// earlier state of the same run may remove its cause. If none does, Apply fails with the same error.
func (p *present) checkNew(h *host.Host) (module.Diff, error) {
	d := module.Diff{Planned: value.NewMap(), Comment: fmt.Sprintf("group %s would be made", p.Name)}
	n := p.newGroup()
	n.Expected = module.ExpectedAccounts(p.Planned)
	planned, err := h.Accounts.PlanGroup(n)
	if err != nil {
		d.Missing = append(d.Missing, err)
	}
	d.Changes = Info(planned)
	lacks, err := p.lacks(h, n.Members)
	d.Missing = append(d.Missing, lacks...)
	return d, err
}

// membersOf returns the members that a change sets.
func membersOf(c host.GroupChange) []string {
	if c.Members == nil {
		return nil
	}
	return *c.Members
}

// lacks returns an error for each declared member that does not exist.
func (p *present) lacks(h *host.Host, members []string) (lacks []error, err error) {
	expected := module.ExpectedAccounts(p.Planned)
	for _, name := range members {
		_, there, err := expected.User(h.Accounts, name)
		if err != nil {
			return nil, err
		}
		if !there {
			err := diag.Prerequisite.Hint(fmt.Errorf("user %s, who is to be in group %s, does not exist", name, p.Name),
				"make the user in a user.present state that this one requires, or leave the name out")
			lacks = append(lacks, host.WithMissing(err, host.AUser, name))
		}
	}
	return lacks, nil
}

func (p *present) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	err := p.carryOut(ctx, h)
	g, there, errNow := h.Accounts.Group(p.Name)
	if err == nil {
		err = errNow
	}
	if !there {
		return module.Report{}, err
	}
	_, differs := p.compare(g)
	if err == nil && differs.Len() > 0 {
		err = fmt.Errorf("group %s still differs: %s", p.Name, strings.Join(differs.Names(), ", "))
	}
	switch {
	case differs.Len() > 0:
		return module.Report{Changes: value.NewMap("Failed", differs)}, err
	case p.change == nil:
		return module.Report{Changes: Info(g), Comment: fmt.Sprintf("group %s was made", p.Name)}, err
	}
	return module.Report{Changes: final(), Comment: fmt.Sprintf("group %s changed", p.Name)}, err
}

func (p *present) carryOut(ctx context.Context, h *host.Host) error {
	if p.change != nil {
		if err := h.Accounts.ChangeGroup(ctx, p.Name, *p.change); err != nil {
			return fmt.Errorf("changing group %s: %w", p.Name, err)
		}
		return nil
	}
	n := p.newGroup()
	if _, err := h.Accounts.PlanGroup(n); err != nil {
		return diag.KeepHint(fmt.Errorf("making group %s: %w", p.Name, err), diag.HintOf(err))
	}
	if err := h.Accounts.AddGroup(ctx, n); err != nil {
		return fmt.Errorf("making group %s: %w", p.Name, err)
	}
	return nil
}
