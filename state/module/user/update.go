package user

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/owned"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// change is the difference between an existing account and the declared one.
type change struct {
	before, after Info
	old, aged     host.Shadow // the shadow entry before and after

	user     host.UserChange
	shadow   host.ShadowChange
	makeHome string   // a missing home directory to create
	words    []string // the arguments that differ
	obstacle error    // the reason why the change would fail now
}

// differs records that an argument differs from the account.
func differs[T comparable](c *change, argument string, wanted T, field *T, order **T) {
	if *field != wanted {
		*field, *order = wanted, &wanted
		c.words = append(c.words, argument)
	}
}

// compare returns the difference between the account and the declared one.
func (p *present) compare(h *host.Host, info Info) (*change, error) {
	c := &change{before: info, after: info}
	if p.UID != nil && *p.UID != 0 {
		differs(c, "uid", *p.UID, &c.after.UID, &c.user.UID)
		c.user.NonUnique = !p.Unique
	}
	if err := p.compareGroups(h, c); err != nil {
		return c, err
	}
	if p.Home != "" {
		differs(c, "home", p.Home, &c.after.Home, &c.user.Home)
	}
	if p.Shell != "" {
		differs(c, "shell", p.Shell, &c.after.Shell, &c.user.Shell)
	}
	if err := p.compareHome(h, c); err != nil {
		return c, err
	}
	if err := p.compareShadow(h, c); err != nil {
		return c, err
	}
	if text := p.gecosOf(parseGecos(info.Gecos)).String(); parseGecos(text) != parseGecos(info.Gecos) {
		differs(c, "comment", text, &c.after.Gecos, &c.user.Gecos)
	}
	return c, p.forbidden(c)
}

// forbidden returns an error for a change of uid or gid that the arguments do not allow, since the user's files
// would keep the old IDs.
func (p *present) forbidden(c *change) error {
	var problems []error
	if c.user.UID != nil && !p.AllowUIDChange {
		problems = append(problems,
			diag.Account.Hint(fmt.Errorf("user %s has uid %d, and it may not be changed to %d", p.Name, c.before.UID,
				*c.user.UID), "set allow_uid_change: True, and give its files to the new uid"))
	}
	if c.user.Group != nil && !p.AllowGIDChange {
		problems = append(problems, diag.Account.Hint(fmt.Errorf("user %s has gid %d, and it may not be changed to %s",
			p.Name, c.before.GID, *c.user.Group),
			"set allow_gid_change: True, and give its files to the new group"))
	}
	return errors.Join(problems...)
}

// compareGroups compares the primary group and the memberships.
func (p *present) compareGroups(h *host.Host, c *change) error {
	own, err := groupNamed(h, strconv.Itoa(c.before.GID))
	if err != nil {
		return err
	}
	newOwn, err := p.compareOwnGroup(h, c, own)
	if err != nil {
		return err
	}
	if err := p.compareMembers(h, c, own.Name, newOwn.Name); err != nil {
		return err
	}
	if c.user.Group == nil && c.user.Groups == nil {
		return nil
	}
	members, err := memberOf(h, p.Name)
	if err != nil {
		return err
	}
	switch {
	case c.user.Groups != nil && c.user.KeepGroups:
		members = slices.Concat(members, *c.user.Groups)
	case c.user.Groups != nil:
		members = slices.Clone(*c.user.Groups)
	}
	c.after.Groups, err = withSameGIDs(h, append(members, newOwn.Name)...)
	return err
}

// compareOwnGroup returns the declared primary group. A missing group is recorded as an obstacle and not an
// error, since an earlier state of the same run may create it.
func (p *present) compareOwnGroup(h *host.Host, c *change, own host.Group) (host.Group, error) {
	wanted, err := p.ownGroup(h)
	if err != nil || wanted == "" {
		return own, err
	}
	g, err := groupNamed(h, wanted)
	if err == nil && g.Name == "" && g.GID != c.before.GID {
		err = noGroup(wanted)
	}
	switch {
	case errors.Is(err, errNoGroup):
		c.obstacle = err
	case err != nil, g.GID == c.before.GID:
		return g, err
	}
	c.after.GID, c.user.Group = g.GID, &wanted
	c.words = append(c.words, "gid")
	return g, nil
}

// compareMembers compares the memberships. If no groups are declared or remove_groups is False, the present
// memberships are kept, including that of a former primary group. A primary group, present or declared, needs
// no membership, and a group with the user's name is kept, since other tools add it.
func (p *present) compareMembers(h *host.Host, c *change, own, newOwn string) error {
	wanted := p.memberships()
	if !p.RemoveGroups || p.Groups == nil && len(p.optional) == 0 {
		wanted = sorted(append(wanted, c.before.Groups...))
	}
	has := without(c.before.Groups, own, newOwn)
	if !slices.Contains(wanted, p.Name) {
		has = without(has, p.Name)
	}
	wanted = without(wanted, newOwn)
	if p.RemoveGroups && slices.Equal(has, wanted) || !p.RemoveGroups && subset(wanted, has) {
		return nil
	}
	all, err := withSameGIDs(h, append(slices.Clone(wanted), newOwn)...)
	if err != nil || c.user.Group == nil && subset(all, c.before.Groups) && (!p.RemoveGroups || subset(has, all)) {
		return err // the lists differ only in the names of groups that share a gid
	}
	c.user.Groups, c.user.KeepGroups = &wanted, !p.RemoveGroups
	c.words = append(c.words, "groups")
	return nil
}

func (p *present) compareHome(h *host.Host, c *change) error {
	home := c.after.Home
	// Debian policy defines that this directory never exists.
	if !p.CreateHome || home == "" || home == "/nonexistent" {
		return nil
	}
	there, err := owned.IsDirectory(h, home)
	if err != nil || there {
		return err
	}
	c.makeHome = home
	c.words = append(c.words, "createhome")
	return nil
}

func (p *present) compareShadow(h *host.Host, c *change) error {
	if !p.asksShadow() {
		return nil
	}
	shadow, _, err := h.Accounts.Shadow(p.Name)
	if err != nil {
		return err
	}
	c.old, c.aged = shadow, shadow
	p.comparePassword(c)
	for _, f := range []struct {
		argument string
		wanted   *int
		field    *int
		order    **int
	}{
		{"date", p.Date, &c.aged.LastChange, &c.shadow.LastChange}, {"mindays", p.MinDays, &c.aged.Min, &c.shadow.Min},
		{"maxdays", p.MaxDays, &c.aged.Max, &c.shadow.Max}, {"inactdays", p.InactDays, &c.aged.Inactive, &c.shadow.Inactive},
		{"warndays", p.WarnDays, &c.aged.Warn, &c.shadow.Warn},
		{"expire", nonZero(p.Expire), &c.aged.Expire, &c.shadow.Expire},
	} {
		if f.wanted != nil {
			differs(c, f.argument, *f.wanted, f.field, f.order)
		}
	}
	return nil
}

// nonZero returns nil for 0. Like Salt, expire: 0 means that expire is not given.
func nonZero(n *int) *int {
	if n == nil || *n == 0 {
		return nil
	}
	return n
}

// asksShadow reports whether any argument needs the shadow entry, which only root can read.
func (p *present) asksShadow() bool {
	for _, n := range []*int{p.Date, p.MinDays, p.MaxDays, p.InactDays, p.WarnDays, p.Expire} {
		if n != nil {
			return true
		}
	}
	return p.Password != "" || p.EmptyPassword || p.PasswordLock != nil
}

func today() int { return int(time.Now().Unix() / (24 * 60 * 60)) }

// diff returns the module.Diff of the change. Like Salt's, a dry run reports only the comment.
func (c *change) diff(warnings []string) (module.Diff, error) {
	if len(c.words) == 0 {
		return module.Diff{Comment: fmt.Sprintf("user %s is as declared", c.before.Name), Warnings: warnings}, nil
	}
	var lacks []error
	if c.obstacle != nil {
		lacks = append(lacks, c.obstacle)
	}
	return module.Diff{
		Missing: lacks, Changes: c.report(c.after, c.aged), Planned: value.NewMap(), Warnings: warnings,
		Comment: fmt.Sprintf("user %s would change: %s", c.before.Name, strings.Join(c.words, ", ")),
	}, nil
}

// report returns the differences between the account before and after, passwords redacted.
func (c *change) report(now Info, aged host.Shadow) *value.Map {
	changes := difference(c.before.Map(), now.Map())
	for key, v := range difference(shadowMap(c.old), shadowMap(aged)).All() {
		if key == "passwd" {
			v = redacted
		}
		changes.Set(key.(string), v)
	}
	if c.makeHome != "" {
		changes.Set("home", c.makeHome)
	}
	return changes
}

func (p *present) applyChange(ctx context.Context, h *host.Host) (module.Report, error) {
	c := p.change
	if c.obstacle != nil {
		return module.Report{}, c.obstacle
	}
	err := p.carryOut(ctx, h, c)
	now, _, errNow := Lookup(h, p.Name)
	if err == nil {
		err = errNow
	}
	aged := c.old
	if p.asksShadow() {
		if s, ok, errShadow := h.Accounts.Shadow(p.Name); ok && errShadow == nil {
			aged = s
		}
	}
	report := module.Report{Changes: c.report(now, aged),
		Comment: fmt.Sprintf("user %s changed: %s", p.Name, strings.Join(c.words, ", "))}
	if err != nil {
		return report, err
	}
	return report, p.settled(h, now)
}

// carryOut applies the change: first the account, which is the most likely to fail, then the home directory and
// the shadow entry.
func (p *present) carryOut(ctx context.Context, h *host.Host, c *change) error {
	if err := h.Accounts.ChangeUser(ctx, p.Name, c.user); err != nil {
		return err
	}
	if c.makeHome != "" {
		if err := owned.Directory(h, c.makeHome, 0o755, c.after.User); err != nil {
			return diag.Account.Hint(fmt.Errorf("making the home of %s: %w", p.Name, err),
				"look at the directory above it, or set createhome: False")
		}
	}
	return h.Accounts.SetShadow(ctx, p.Name, c.shadow)
}

// settled returns an error if the account still differs from the declared one.
func (p *present) settled(h *host.Host, now Info) error {
	again, err := p.compare(h, now)
	if err == nil && len(again.words) > 0 {
		err = fmt.Errorf("user %s still differs: %s", p.Name, strings.Join(again.words, ", "))
	}
	return err
}
